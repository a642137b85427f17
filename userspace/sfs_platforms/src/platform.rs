//! The platforms.

/// What a platform has of its own.
#[derive(Debug)]
pub struct Platform {
    /// The name of its script in `vm/platforms/guest/`, and of its folder of results.
    pub name: &'static str,
    /// The options of scx_sfs for it, separated by spaces.
    pub options: &'static str,
    /// The programs of this workspace that it needs in the guest.
    pub programs: &'static [&'static str],
    /// The programs of the host that it needs in the guest, each with its package.
    pub tools: &'static [(&'static str, &'static str)],
}

/// Google's Functions Framework for Python behind gunicorn's pre-forked workers.
///
/// A worker that accepts a connection begins an invocation. Each worker is a unit of its own,
/// in the cgroup that it shares with the others of its function.
pub const FUNCTIONS_FRAMEWORK: Platform = Platform {
    name: "functions-framework",
    options: "--cgroup functions/* --unit process --boundary accept",
    programs: &[],
    tools: &[],
};

/// AWS's runtime interface client against a small local Lambda.
///
/// A sandbox that receives its next event from the Runtime API begins an invocation.
pub const LAMBDA: Platform = Platform {
    name: "lambda",
    options: "--cgroup functions/* --unit process --boundary receive --receive-port 9001",
    programs: &["lambda_runtime_api"],
    tools: &[("chrt", "util-linux")],
};
