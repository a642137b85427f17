//! Counting primes by trial division: integer division, and branches that are
//! hard to predict.

/// Numbers are tested up to this limit, then from the start again: the last
/// ones take some 500 divisions, a microsecond or two.
const LIMIT: u32 = 1_000_000;

/// The state of a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Primes {
    tried: u32,
    found: u64,
}

impl Primes {
    /// Tries the next `count` numbers.
    pub fn test(&mut self, count: u64) {
        for _ in 0..count {
            self.tried = self.tried % LIMIT + 1;
            self.found += u64::from(is_prime(self.tried));
        }
    }

    /// The number of primes found.
    pub fn found(&self) -> u64 {
        self.found
    }
}

fn is_prime(number: u32) -> bool {
    if number < 4 {
        return number > 1;
    }
    if number.is_multiple_of(2) {
        return false;
    }
    let mut divisor = 3;
    while divisor * divisor <= number {
        if number.is_multiple_of(divisor) {
            return false;
        }
        divisor += 2;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_78498_primes_below_a_million() {
        let mut primes = Primes::default();
        primes.test(100);
        assert_eq!(primes.found(), 25);
        primes.test(u64::from(LIMIT) - 100);
        assert_eq!(primes.found(), 78_498);
        // Then it starts again.
        primes.test(2);
        assert_eq!((primes.tried, primes.found()), (2, 78_499));
    }
}
