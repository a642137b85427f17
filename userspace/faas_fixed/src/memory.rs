//! Whether the working sets fit this machine.

use faas_data::fixed::Kernel;

/// The largest working set of `kernels`, in bytes; 0 if there are none.
pub fn largest(kernels: &[Kernel]) -> u64 {
    let sizes = kernels.iter().map(|kernel| kernel.set.bytes() as u64);
    sizes.max().unwrap_or(0)
}

/// Checks that `count` working sets of `bytes` bytes fit the memory that the
/// text of /proc/meminfo says is available. A text without that says nothing.
///
/// # Errors
/// One sentence.
pub fn check(count: u64, bytes: u64, meminfo: &str) -> Result<(), String> {
    let Some(available) = available(meminfo) else {
        return Ok(());
    };
    let needed = count.saturating_mul(bytes);
    if needed <= available {
        return Ok(());
    }
    Err(format!(
        "{count} working sets of {} KiB need {} MiB, and only {} MiB of memory are available: take \
         smaller working sets, fewer CPUs or fewer sandboxes",
        bytes >> 10,
        needed.div_ceil(1 << 20),
        available >> 20
    ))
}

/// The available memory in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "MemTotal:       24684216 kB\nMemAvailable:   102400 kB\n";

    #[test]
    fn what_does_not_fit_is_refused_with_both_sizes() {
        let bytes = largest(&[Kernel::ALL[0], Kernel::ALL[8], Kernel::ALL[1]]);
        assert_eq!((bytes, largest(&[])), (8 << 20, 0));
        assert_eq!(check(12, bytes, TEXT), Ok(()));
        let said = check(13, bytes, TEXT).unwrap_err();
        let want = "13 working sets of 8192 KiB need 104 MiB, and only 100 MiB of memory";
        assert!(said.starts_with(want), "{said}");
        assert!(check(u64::MAX, bytes, TEXT).is_err());
    }

    #[test]
    fn an_unknown_memory_refuses_nothing() {
        for text in ["", "MemAvailable: x kB", "MemAvailable:", "MemTotal: 5 kB"] {
            assert_eq!(check(1 << 40, 1 << 40, text), Ok(()), "{text}");
        }
    }
}
