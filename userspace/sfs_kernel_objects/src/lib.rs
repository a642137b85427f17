//! Objects of the model's kernel, each by itself: BPF maps ([`maps`]), ring buffers ([`ringbuf`]),
//! dispatch queues ([`dsq`]), the accounts of groups with a quota ([`quota`]), cache lines
//! ([`lines`]), timers ([`timer`]), the numbers that sched_ext has for all that ([`flags`]), and what the
//! loader reads ([`reports`]).

pub mod dsq;
pub mod flags;
pub mod lines;
pub mod maps;
pub mod quota;
pub mod reports;
pub mod ringbuf;
pub mod timer;
