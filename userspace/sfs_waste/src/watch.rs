//! Loads the BPF program that reports the events.

use std::cell::RefCell;
use std::mem::MaybeUninit;

use anyhow::{ensure, Context, Result};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{set_print, OpenObject, RingBufferBuilder};
use sfs_text::{until_nul, word};

use crate::account::{Account, Event, Waiter};
use crate::bpf_intf::{
    sfs_waste_consts_SFS_WASTE_NONE as NONE, sfs_waste_event,
    sfs_waste_flags_SFS_WASTE_KERNEL as KERNEL, sfs_waste_flags_SFS_WASTE_REAL_TIME as REAL_TIME,
    sfs_waste_flags_SFS_WASTE_WOKEN as WOKEN,
};
use crate::bpf_skel::{BpfSkel, BpfSkelBuilder};
use crate::report::Report;

/// A watch, which can be started and stopped repeatedly.
pub struct Watch {
    skel: BpfSkel<'static>,
}

impl Watch {
    /// Loads the program. `bytes`, a power of two, is the memory for events
    /// until [`Watch::stop`]; an event takes 88 bytes.
    ///
    /// # Errors
    ///
    /// The kernel refuses the program, which needs root and a kernel with BTF.
    pub fn load(bytes: u32) -> Result<Self> {
        // libbpf's own output is not fit for users, and the error has the
        // reason.
        let printed = set_print(None);
        let loaded = Self::open_and_attach(bytes);
        set_print(printed);
        loaded
    }

    fn open_and_attach(bytes: u32) -> Result<Self> {
        // A watching program lives as long as the process.
        let object: &'static mut MaybeUninit<OpenObject> =
            Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = BpfSkelBuilder::default()
            .open(object)
            .context("cannot open the program that watches for wasted CPUs")?;
        // A part of scx's headers, which needs a kernel with sched_ext.
        open.progs.scx_lib_init_probe.set_autoload(false);
        open.maps.events.set_max_entries(bytes)?;
        let mut skel = open
            .load()
            .context("the kernel refuses the program that watches for wasted CPUs; it needs root and a kernel with BTF")?;
        skel.attach()
            .context("cannot attach the program that watches for wasted CPUs")?;
        Ok(Self { skel })
    }

    /// Begins to watch; earlier events are dropped.
    ///
    /// # Errors
    ///
    /// The events cannot be read.
    pub fn start(&mut self) -> Result<()> {
        self.drain()?;
        self.data()?.lost = 0;
        self.data()?.watching = true;
        Ok(())
    }

    /// Stops watching; returns the report.
    ///
    /// # Errors
    ///
    /// The events cannot be read.
    pub fn stop(&mut self) -> Result<Report> {
        self.data()?.watching = false;
        let mut events = self.drain()?;
        let lost = self.data()?.lost;
        // CPUs write concurrently.
        events.sort_by_key(|event| event.at_ns);
        let mut account = Account::default();
        events.into_iter().for_each(|event| account.add(event));
        Ok(account.report(lost))
    }

    fn data(&mut self) -> Result<&mut crate::bpf_skel::types::bss> {
        self.skel
            .maps
            .bss_data
            .as_deref_mut()
            .context("the program that watches for wasted CPUs has no data")
    }

    /// Returns the events since the last call. They are mapped only during it,
    /// because every fork would copy the page tables of this memory.
    fn drain(&self) -> Result<Vec<Event>> {
        let seen = RefCell::new(Vec::new());
        let mut builder = RingBufferBuilder::new();
        builder.add(&self.skel.maps.events, |bytes| {
            seen.borrow_mut().extend(event_of(bytes));
            0
        })?;
        let read = builder.build()?.consume_raw();
        ensure!(read >= 0, "cannot read the scheduling events: {read}");
        Ok(seen.into_inner())
    }
}

/// Returns the event in `bytes`, or none if the size is wrong.
fn event_of(bytes: &[u8]) -> Option<Event> {
    if bytes.len() < size_of::<sfs_waste_event>() {
        return None;
    }
    // SAFETY: the length was checked, and any bytes are a valid event.
    let event = unsafe { bytes.as_ptr().cast::<sfs_waste_event>().read_unaligned() };
    let waits = (event.waits != NONE).then(|| Waiter {
        thread: event.waits,
        name: word(until_nul(&event.comm)),
        cpus: event.cpus,
        kernel: event.flags & KERNEL != 0,
        woken: event.flags & WOKEN != 0,
    });
    let switch = (event.runs != NONE).then_some((event.cpu as usize, event.runs));
    let softirq = (event.softirq_ns > 0).then_some((event.cpu as usize, event.softirq_ns));
    Some(Event {
        at_ns: event.at_ns,
        waits,
        switch,
        real_time: event.flags & REAL_TIME != 0,
        softirq,
    })
}
