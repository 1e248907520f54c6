//! The only source of randomness of tests and of the soak: SplitMix64, which is
//! short to read and the same on every machine. A crate's generator may change
//! its stream with its version; then an old seed would no longer reproduce
//! anything.

/// A stream of numbers that is a function of its seed.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in `low..high`. The bias of the remainder is below 2^-40 for
    /// the ranges used here, which are shorter than 2^24.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low).max(1)
    }

    /// A random element; `None` if there are none.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        let count = u64::try_from(from.len()).unwrap_or(u64::MAX);
        let index = usize::try_from(self.between(0, count)).unwrap_or(0);
        from.get(index).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    /// The first numbers of the published reference for the seed 1234567.
    #[test]
    fn it_is_splitmix64() {
        let mut random = Random::new(1_234_567);
        let drawn: Vec<u64> = (0..3).map(|_| random.next()).collect();
        assert_eq!(
            drawn,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn what_is_drawn_lies_in_its_range() {
        let mut random = Random::new(7);
        assert!((0..1_000).all(|_| (3..9).contains(&random.between(3, 9))));
        assert_eq!(random.between(5, 5), 5);
        assert_eq!(random.pick::<u8>(&[]), None);
    }
}
