//! Checks that hold for any datagram; the fuzz target runs them, too.

use sfs_hint::{decode, encode, hints, Form, Hint, MAX_DATAGRAM_BYTES, MAX_HINTS};

/// Reads any bytes, and checks that valid hints survive a round trip in both
/// forms.
pub fn check_any(bytes: &[u8]) {
    let items = hints(bytes).count();
    assert!((1..=MAX_HINTS + 1).contains(&items), "{items} items");
    let read = match decode(bytes) {
        Ok(read) => read,
        // Errors can be printed, and are short.
        Err(error) => {
            assert!(error.to_string().len() < 300, "{error}");
            return;
        }
    };
    assert_eq!(read.len(), items);
    assert!(bytes.len() <= MAX_DATAGRAM_BYTES);
    comes_back(&read, Form::Binary);
    let rounded: Vec<Hint> = read.iter().map(whole_us).collect();
    comes_back(&rounded, Form::Text);
}

/// The text form cannot express less than a microsecond, nor 0.
pub fn whole_us(hint: &Hint) -> Hint {
    let whole = |ns: Option<u64>| ns.map(|ns| ns / 1000 * 1000).filter(|&ns| ns > 0);
    Hint {
        arrived_at_ns: whole(hint.arrived_at_ns),
        service_ns: whole(hint.service_ns),
        ..hint.clone()
    }
}

/// One by one, since a set that fits into a datagram in one form may not fit in
/// the other.
pub fn comes_back(hints: &[Hint], form: Form) {
    for hint in hints {
        let hint = std::slice::from_ref(hint);
        let bytes = encode(hint, form).expect("a hint that was read can be written");
        assert_eq!(decode(&bytes).as_deref(), Ok(hint));
    }
}
