//! Settings of long runs.

/// A number from the environment, if it is set.
pub fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|v| v.parse().unwrap_or_else(|_| panic!("{name} must be a number, found {v:?}")))
}
