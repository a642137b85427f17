//! Adds conversions between structs of `intf.h` and bytes.

/// The text that bindgen writes before each struct.
const HEAD: &str = "#[repr(C)]\n#[derive(Debug, Copy, Clone)]\npub struct sfs_";

/// zerocopy's macros reject structs with gaps, or with bytes that must not have
/// any value.
const DERIVES: &str = "#[derive(::zerocopy::FromBytes, ::zerocopy::IntoBytes, \
                       ::zerocopy::Immutable, ::zerocopy::KnownLayout)]\n";

/// Returns `bindings` with zerocopy's conversions for each struct. `None`: a
/// struct has an unexpected form.
pub fn with_conversions(bindings: &str) -> Option<String> {
    let structs = bindings.matches("pub struct sfs_").count();
    let known = bindings.matches(HEAD).count();
    (structs > 0 && structs == known).then(|| bindings.replace(HEAD, &format!("{DERIVES}{HEAD}")))
}
