//! CPU time that an emulator need not spend.
//!
//! In virtual time each emulated instruction takes a nanosecond of the guest's time, whatever it
//! does. QEMU translates a no-operation into nothing, and a block of some hundred of them into a
//! dozen instructions of the host. A process that has to use CPU time, for whatever it may be,
//! therefore executes these: the guest's kernel sees no difference from arithmetic in registers,
//! and the host takes a tenth of the time.

/// Instructions that [`pass`] executes for each unit of its argument. QEMU translates up to 512
/// instructions as one block.
pub const INSTRUCTIONS: u64 = 500;

/// Executes some `count` times [`INSTRUCTIONS`].
pub fn pass(count: u64) {
    for _ in 0..count {
        block();
    }
}

/// The loop around it has the other instructions.
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64"
))]
#[inline]
fn block() {
    // SAFETY: the instructions change neither registers, flags nor memory.
    unsafe {
        std::arch::asm!(
            ".rept 496",
            "nop",
            ".endr",
            options(nomem, nostack, preserves_flags)
        );
    }
}

/// Where the assembler's instruction is not known: as many instructions, with effects.
#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64"
)))]
fn block() {
    let mut value = std::hint::black_box(1u64);
    for _ in 0..INSTRUCTIONS / 4 {
        // Knuth's linear congruential generator (MMIX).
        value = value
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
    }
    std::hint::black_box(value);
}
