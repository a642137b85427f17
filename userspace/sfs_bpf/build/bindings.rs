//! Lets structs of `intf.h` become bytes, and bytes such structs.

/// What bindgen writes before each struct.
const HEAD: &str = "#[repr(C)]\n#[derive(Debug, Copy, Clone)]\npub struct sfs_";

/// zerocopy's macros refuse a struct that has gaps, or that not all bytes are good for.
const DERIVES: &str = "#[derive(::zerocopy::FromBytes, ::zerocopy::IntoBytes, \
                       ::zerocopy::Immutable, ::zerocopy::KnownLayout)]\n";

/// Returns `bindings` with zerocopy's conversions for each struct. `None`: a struct is written
/// otherwise than it used to be.
pub fn with_conversions(bindings: &str) -> Option<String> {
    let structs = bindings.matches("pub struct sfs_").count();
    let known = bindings.matches(HEAD).count();
    (structs > 0 && structs == known).then(|| bindings.replace(HEAD, &format!("{DERIVES}{HEAD}")))
}
