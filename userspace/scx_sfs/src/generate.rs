//! What a package brings with the program: `sfs_generate` makes it of the definition of the
//! options.

use sfs_generate::Program;

use crate::config::{keys, template};

/// Returns the program as it describes itself.
pub fn program() -> Program {
    Program {
        command: keys::command(),
        version: env!("CARGO_PKG_VERSION"),
        configuration: template::text(),
    }
}
