//! Sections in which a task may run on one CPU only without being confined to it, as
//! the kernel has many: here BPF programs of the kind that runs by a system call, during
//! which the kernel disables migration.

use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use anyhow::{Context, Result};
use libbpf_sys::{
    bpf_insn, bpf_prog_load, bpf_prog_load_opts, bpf_prog_test_run_opts, bpf_test_run_opts,
    BPF_F_SLEEPABLE, BPF_PROG_TYPE_SYSCALL,
};
use nix::errno::Errno;
use nix::sys::mman::{mmap_anonymous, MapFlags, ProtFlags};

use crate::clock::sleep;

/// A section, ready to be entered.
pub struct Section {
    program: OwnedFd,
}

impl Section {
    /// Returns one that burns CPU time for a quarter of a second: what the kernel gives a
    /// loop without a bound of its own.
    ///
    /// # Errors
    ///
    /// The kernel refuses it.
    pub fn that_spins() -> Result<Self> {
        const JUMP: u8 = 0x05;
        const MAY_GOTO: u8 = 0xe5; // BPF_JMP | BPF_JCOND: jumps when the time is over
        let end = return_0();
        Self::load(&[
            instruction(MAY_GOTO, 0, 0, 1, 0),
            instruction(JUMP, 0, 0, -2, 0),
            end[0],
            end[1],
        ])
    }

    /// Returns one that reads from the address that it is given, and so sleeps until there
    /// is something.
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
        // SAFETY: the instructions, the strings and the options live until the call returns.
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
        // SAFETY: the descriptor is new, and nobody else's.
        let program = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { program })
    }

    /// Enters the section, and comes back when it is over.
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
        // SAFETY: the argument and the options live until the call returns.
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

/// Returns what sets the result to 0 and ends a program.
fn return_0() -> [bpf_insn; 2] {
    [instruction(0xb7, 0, 0, 0, 0), instruction(0x95, 0, 0, 0, 0)]
}

nix::ioctl_readwrite!(uffd_api, 0xaa, 0x3f, UffdApi);
nix::ioctl_readwrite!(uffd_register, 0xaa, 0x00, UffdRegister);
nix::ioctl_readwrite!(uffd_zeropage, 0xaa, 0x04, UffdZeropage);

/// `struct uffdio_api` of linux/userfaultfd.h.
#[repr(C)]
#[derive(Default)]
pub struct UffdApi {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// `struct uffdio_register`.
#[repr(C)]
#[derive(Default)]
pub struct UffdRegister {
    start: u64,
    length: u64,
    mode: u64,
    ioctls: u64,
}

/// `struct uffdio_zeropage`.
#[repr(C)]
#[derive(Default)]
pub struct UffdZeropage {
    start: u64,
    length: u64,
    mode: u64,
    filled: i64,
}

const PAGE: u64 = 4096;

/// A page that nobody can read before it is filled.
pub struct LatePage {
    start: u64,
    faults: OwnedFd,
}

impl LatePage {
    /// Makes one in the calling process. It stays until that ends.
    ///
    /// # Errors
    ///
    /// The kernel has no userfaultfd(2) for it.
    pub fn new() -> Result<Self> {
        let length = (PAGE as usize).try_into().context("a page is not empty")?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: the kernel chooses a place where nothing is.
        let memory = unsafe { mmap_anonymous(None, length, access, MapFlags::MAP_PRIVATE) }
            .context("no memory for a page")?;
        let start = memory.as_ptr() as u64;
        // SAFETY: the call takes a number and makes a descriptor.
        let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) };
        let fd = Errno::result(fd).context("no userfaultfd")?;
        // SAFETY: the descriptor is new, and nobody else's.
        let faults = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        let mut api = UffdApi {
            api: 0xaa,
            ..Default::default()
        };
        // SAFETY: the structure is what the kernel expects and lives until the call returns.
        unsafe { uffd_api(faults.as_raw_fd(), &raw mut api) }.context("no userfaultfd")?;
        let mut range = UffdRegister {
            start,
            length: PAGE,
            mode: 1, // UFFDIO_REGISTER_MODE_MISSING
            ..Default::default()
        };
        // SAFETY: the same.
        unsafe { uffd_register(faults.as_raw_fd(), &raw mut range) }
            .context("userfaultfd does not take the page")?;
        Ok(Self { start, faults })
    }

    /// Returns where it is.
    pub fn address(&self) -> u64 {
        self.start
    }

    /// Starts a thread that fills it after `delay`.
    pub fn fill_after(&self, delay: Duration) {
        let faults = self.faults.as_raw_fd();
        let mut page = UffdZeropage {
            start: self.start,
            length: PAGE,
            ..Default::default()
        };
        std::thread::spawn(move || {
            sleep(delay);
            // SAFETY: the structure is what the kernel expects and lives until the call
            // returns. Who reads notices if the page is not filled.
            let _ = unsafe { uffd_zeropage(faults, &raw mut page) };
        });
    }

    /// Empties it, to be filled again.
    pub fn empty(&self) {
        // SAFETY: the page is this object's, and nobody has a reference to what is in it.
        unsafe {
            libc::madvise(
                ptr::with_exposed_provenance_mut(self.start as usize),
                PAGE as usize,
                libc::MADV_DONTNEED,
            )
        };
    }
}
