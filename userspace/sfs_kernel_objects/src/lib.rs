//! Objects of the model's kernel, each by itself: BPF maps ([`maps`]), ring buffers ([`ringbuf`]),
//! dispatch queues ([`dsq`]), and the accounts of groups with a quota ([`quota`]).

pub mod dsq;
pub mod maps;
pub mod quota;
pub mod ringbuf;
