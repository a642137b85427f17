//! Sets of CPUs.

/// Words of a set.
const WORDS: usize = 16;

/// CPUs up to number 1023; further ones are in no set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cpus([u64; WORDS]);

impl Cpus {
    /// The first `count` CPUs.
    pub fn first(count: usize) -> Self {
        let mut all = Self::default();
        (0..count).for_each(|cpu| all.insert(cpu));
        all
    }

    /// The set whose words these are, CPU 0 in the lowest bit of the first one.
    pub fn of_words(words: [u64; WORDS]) -> Self {
        Self(words)
    }

    /// Adds `cpu`.
    pub fn insert(&mut self, cpu: usize) {
        if let Some(word) = self.0.get_mut(cpu / 64) {
            *word |= 1 << (cpu % 64);
        }
    }

    /// Removes `cpu`.
    pub fn remove(&mut self, cpu: usize) {
        if let Some(word) = self.0.get_mut(cpu / 64) {
            *word &= !(1 << (cpu % 64));
        }
    }

    /// Returns whether `cpu` is in it.
    pub fn contains(&self, cpu: usize) -> bool {
        self.0
            .get(cpu / 64)
            .is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// Returns whether all of them are in `other`.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0
            .iter()
            .zip(other.0)
            .all(|(own, other)| own & !other == 0)
    }

    /// Returns what is in both.
    pub fn and(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    /// Returns their number.
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_cpus() {
        let mut some = Cpus::first(3);
        assert_eq!(some.count(), 3);
        some.insert(1023);
        some.insert(1024);
        assert_eq!(some.count(), 4);
        assert!(some.contains(1023) && !some.contains(3));
        assert!(!some.is_within(&Cpus::first(64)));
        some.remove(1023);
        assert!(some.is_within(&Cpus::first(64)));
        assert_eq!(some.and(&Cpus::first(2)), Cpus::first(2));
    }
}
