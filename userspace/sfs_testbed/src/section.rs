//! Sections in which a task must stay on its CPU without being confined to it. The kernel has
//! many; here they are BPF programs that run by a system call, during which the kernel disables
//! migration.

use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use anyhow::{Context, Result};
use libbpf_sys::{
    bpf_insn, bpf_prog_load, bpf_prog_load_opts, bpf_prog_test_run_opts, bpf_test_run_opts,
    BPF_F_SLEEPABLE, BPF_PROG_TYPE_SYSCALL,
};
use nix::errno::Errno;

/// A section, ready to be entered.
pub struct Section {
    program: OwnedFd,
}

impl Section {
    /// Returns a section that burns CPU time for a quarter of a second, the kernel's limit for a
    /// loop without a bound of its own.
    ///
    /// # Errors
    ///
    /// The kernel refuses it.
    pub fn that_spins() -> Result<Self> {
        const JUMP: u8 = 0x05;
        const MAY_GOTO: u8 = 0xe5; // BPF_JMP | BPF_JCOND: jumps when the time is up
        let end = return_0();
        Self::load(&[
            instruction(MAY_GOTO, 0, 0, 1, 0),
            instruction(JUMP, 0, 0, -2, 0),
            end[0],
            end[1],
        ])
    }

    /// Returns a section that reads from the address given to [`Self::enter`], and sleeps until
    /// there is a page.
    ///
    /// # Errors
    ///
    /// The kernel refuses it.
    pub fn that_reads() -> Result<Self> {
        const LOAD: u8 = 0x79;
        const MOVE: u8 = 0xbf;
        const ADD: u8 = 0x07;
        const SET: u8 = 0xb7;
        const CALL: u8 = 0x85;
        const COPY_FROM_USER: i32 = 148; // BPF_FUNC_copy_from_user
        let end = return_0();
        Self::load(&[
            instruction(LOAD, 3, 1, 0, 0),
            instruction(MOVE, 1, 10, 0, 0),
            instruction(ADD, 1, 0, 0, -8),
            instruction(SET, 2, 0, 0, 8),
            instruction(CALL, 0, 0, 0, COPY_FROM_USER),
            end[0],
            end[1],
        ])
    }

    fn load(instructions: &[bpf_insn]) -> Result<Self> {
        let options = bpf_prog_load_opts {
            sz: size_of::<bpf_prog_load_opts>() as u64,
            prog_flags: BPF_F_SLEEPABLE,
            ..Default::default()
        };
        // SAFETY: the instructions, the strings and the options outlive the call.
        let fd = unsafe {
            bpf_prog_load(
                BPF_PROG_TYPE_SYSCALL,
                c"section".as_ptr(),
                c"GPL".as_ptr(),
                instructions.as_ptr(),
                instructions.len() as u64,
                &raw const options as *mut _,
            )
        };
        Errno::result(fd).context("the kernel refuses the section's program")?;
        // SAFETY: the descriptor is new, and nothing else owns it.
        let program = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { program })
    }

    /// Enters the section, and returns after its end.
    ///
    /// # Errors
    ///
    /// The kernel does not run it.
    pub fn enter(&self, argument: u64) -> Result<()> {
        let mut options = bpf_test_run_opts {
            sz: size_of::<bpf_test_run_opts>() as u64,
            ctx_in: (&raw const argument).cast(),
            ctx_size_in: size_of::<u64>() as u32,
            ..Default::default()
        };
        // SAFETY: the argument and the options outlive the call.
        let result = unsafe { bpf_prog_test_run_opts(self.program.as_raw_fd(), &mut options) };
        Errno::result(result).context("the kernel does not run the section's program")?;
        Ok(())
    }
}

/// Returns an instruction; `to` and `from` are registers.
fn instruction(code: u8, to: u8, from: u8, off: i16, imm: i32) -> bpf_insn {
    bpf_insn {
        code,
        _bitfield_align_1: [],
        _bitfield_1: bpf_insn::new_bitfield_1(to, from),
        off,
        imm,
    }
}

/// Returns the instructions that set the result to 0 and end a program.
fn return_0() -> [bpf_insn; 2] {
    [instruction(0xb7, 0, 0, 0, 0), instruction(0x95, 0, 0, 0, 0)]
}
