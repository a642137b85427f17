//! A number for each function's name, since the kernel half has no room for names.

use std::num::NonZeroUsize;

use lru::LruCache;

/// Number of names remembered. The least recently used name is forgotten first; it gets the
/// same number again when it returns.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// Set in every number of a name, so that it differs from 0 ("not given") and from cgroup ids.
pub const NAME_BIT: u64 = 1 << 63;

/// The remembered names, by number.
#[derive(Debug)]
pub struct Names {
    by_number: LruCache<u64, Box<str>>,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            by_number: LruCache::new(REMEMBERED),
        }
    }
}

impl Names {
    /// Returns the number of `name`: its FNV-1a hash, or the next free number if another
    /// remembered name has it. So the number is the same each time the scheduler is loaded, and
    /// no two names share one.
    pub fn number(&mut self, name: &str) -> u64 {
        let mut number = hash(name) | NAME_BIT;
        loop {
            match self.by_number.get(&number) {
                Some(other) if **other == *name => return number,
                Some(_) => number = number.wrapping_add(1) | NAME_BIT,
                None => break,
            }
        }
        self.by_number.put(number, name.into());
        number
    }

    /// Returns the name with `number`, unless it has been forgotten.
    pub fn name(&self, number: u64) -> Option<&str> {
        self.by_number.peek(&number).map(AsRef::as_ref)
    }
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo).
fn hash(name: &str) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    name.bytes()
        .fold(BASIS, |hash, b| (hash ^ u64::from(b)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        // Test vectors of the algorithm's authors.
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_name_keeps_its_number() {
        let mut names = Names::default();
        let resize = names.number("resize");
        assert_ne!(resize, names.number("crop"));
        assert_eq!(resize, names.number("resize"));
        assert_eq!(resize, Names::default().number("resize"));
        assert_eq!(names.name(resize), Some("resize"));
        assert_ne!(resize & NAME_BIT, 0);
    }

    #[test]
    fn names_that_collide_get_different_numbers() {
        let mut names = Names::default();
        let number = hash("resize") | NAME_BIT;
        names.by_number.put(number, "another".into());
        assert_eq!(names.number("resize"), number + 1);
        assert_eq!(names.number("resize"), number + 1);
        assert_eq!(names.name(number), Some("another"));
    }

    #[test]
    fn unused_names_are_forgotten_first() {
        let mut names = Names::default();
        let resize = names.number("resize");
        let crop = names.number("crop");
        for i in 0..REMEMBERED.get() - 1 {
            names.number(&format!("function-{i}"));
            names.number("resize");
        }
        assert_eq!(names.name(resize), Some("resize"));
        assert_eq!(names.name(crop), None);
        assert_eq!(names.by_number.len(), REMEMBERED.get());
    }
}
