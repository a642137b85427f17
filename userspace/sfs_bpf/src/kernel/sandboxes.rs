//! Which cgroups are sandboxes.

use libbpf_rs::{ErrorKind, MapCore, MapFlags};
use tracing::warn;

use super::shared::Word;
use super::{ignore, KernelHalf};

impl KernelHalf<'_> {
    /// Tells the kernel half that cgroup `id` is a sandbox of `function`. If there is no room
    /// for it, this is logged, and it is added when another sandbox goes.
    pub fn add_sandbox(&mut self, id: u64, function: u64) {
        match self.put_sandbox(id, function) {
            Ok(()) => self.take_left_out(),
            Err(error) => self.left_out.add(id, function, &error),
        }
    }

    /// Tells the kernel half that cgroup `id` is no longer a sandbox.
    pub fn remove_sandbox(&mut self, id: u64) {
        if self.left_out.remove(id) {
            return;
        }
        let map = &self.skel.maps.sandboxes;
        let removed = map
            .delete(&id.to_ne_bytes())
            .or_else(|error| ignore(error, ErrorKind::NotFound));
        if let Err(error) = removed {
            // The cgroup no longer has tasks, so nothing looks it up.
            warn!("cannot remove a sandbox from the kernel half: {error}");
        }
        self.take_left_out();
    }

    /// After room has become free: adds as many of the left-out sandboxes as fit.
    fn take_left_out(&mut self) {
        while let Some((id, function)) = self.left_out.first() {
            if self.put_sandbox(id, function).is_err() {
                break;
            }
            self.left_out.remove(id);
        }
        self.count_sandbox_change();
    }

    /// Returns how many sandboxes did not fit.
    pub fn sandboxes_left_out(&self) -> usize {
        self.left_out.len()
    }

    fn put_sandbox(&self, id: u64, function: u64) -> libbpf_rs::Result<()> {
        let map = &self.skel.maps.sandboxes;
        // The last field of `struct sandbox` is the function; the others start as 0.
        let mut value = vec![0; map.value_size() as usize - size_of::<u64>()];
        value.extend(function.to_ne_bytes());
        map.update(&id.to_ne_bytes(), &value, MapFlags::NO_EXIST)
            .or_else(|error| ignore(error, ErrorKind::AlreadyExists))
    }

    /// Makes tasks look up their sandbox again.
    fn count_sandbox_change(&mut self) {
        if let Some(data) = self.skel.maps.data_data.as_mut() {
            let next = data.sandbox_generation.wrapping_add(1);
            Word::store(&mut data.sandbox_generation, next);
        }
    }
}
