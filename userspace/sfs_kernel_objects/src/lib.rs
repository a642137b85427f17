//! Objects of the model's kernel, each by itself: BPF maps ([`maps`]), ring buffers ([`ringbuf`]),
//! dispatch queues ([`dsq`]), the accounts of groups with a quota ([`quota`]), cache lines
//! ([`lines`]), and what the loader reads ([`reports`]).

pub mod dsq;
pub mod lines;
pub mod maps;
pub mod quota;
pub mod reports;
pub mod ringbuf;
