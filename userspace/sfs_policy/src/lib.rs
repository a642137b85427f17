//! The decisions of scx_sfs: IAT window, slice and overload, without I/O.
