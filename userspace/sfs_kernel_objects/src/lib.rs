//! Objects of the model's kernel, each by itself: BPF maps ([`maps`]), ring buffers ([`ringbuf`]),
//! dispatch queues ([`dsq`]), the accounts of groups with a quota ([`quota`]), and cache lines
//! ([`lines`]).

pub mod dsq;
pub mod lines;
pub mod maps;
pub mod quota;
pub mod ringbuf;
