//! Packets of Perfetto's format, as far as traces of tracks with slices need them. The numbers are
//! those of Perfetto's public `trace_packet.proto`, `track_descriptor.proto`, `track_event.proto`
//! and `debug_annotation.proto`.

use std::io::Write;

use protobuf::{CodedOutputStream, Result};

mod trace {
    pub const PACKET: u32 = 1;
}

mod trace_packet {
    pub const TIMESTAMP: u32 = 8;
    pub const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    /// The reader need not know earlier packets.
    pub const SEQ_INCREMENTAL_STATE_CLEARED: u32 = 1;
}

mod track_descriptor {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PARENT_UUID: u32 = 5;
    pub const CHILD_ORDERING: u32 = 11;
    pub const SIBLING_ORDER_RANK: u32 = 12;
    /// Children are shown in the order of their ranks.
    pub const EXPLICIT: i32 = 3;
}

mod track_event {
    pub const DEBUG_ANNOTATIONS: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const TRACK_UUID: u32 = 11;
    pub const CATEGORIES: u32 = 22;
    pub const NAME: u32 = 23;
    pub const SLICE_BEGIN: i32 = 1;
    pub const SLICE_END: i32 = 2;
    pub const INSTANT: i32 = 3;
}

mod debug_annotation {
    pub const INT_VALUE: u32 = 4;
    pub const STRING_VALUE: u32 = 6;
    pub const NAME: u32 = 10;
}

/// A detail of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail<'a> {
    /// A number.
    Number(&'a str, i64),
    /// A text.
    Text(&'a str, &'a str),
}

/// A track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Track<'a> {
    /// Its id, not 0.
    pub uuid: u64,
    /// The id of the track above it; 0: none.
    pub parent: u64,
    /// Its name.
    pub name: &'a str,
    /// Its place among its siblings.
    pub rank: i32,
}

/// Writes packets.
pub struct Packets<W> {
    out: W,
    first: bool,
    body: Vec<u8>,
    inner: Vec<u8>,
}

/// Writes one message into `buffer`, which it clears first.
fn message(
    buffer: &mut Vec<u8>,
    write: impl FnOnce(&mut CodedOutputStream<'_>) -> Result<()>,
) -> Result<()> {
    buffer.clear();
    let mut out = CodedOutputStream::vec(buffer);
    write(&mut out)?;
    out.flush()
}

impl<W: Write> Packets<W> {
    /// Returns a writer to `out`.
    pub fn new(out: W) -> Self {
        Self {
            out,
            first: true,
            body: Vec::new(),
            inner: Vec::new(),
        }
    }

    /// Describes a track. Its events come later.
    pub fn track(&mut self, track: &Track<'_>) -> Result<()> {
        message(&mut self.inner, |out| {
            out.write_uint64(track_descriptor::UUID, track.uuid)?;
            out.write_string(track_descriptor::NAME, track.name)?;
            if track.parent != 0 {
                out.write_uint64(track_descriptor::PARENT_UUID, track.parent)?;
            }
            out.write_enum(track_descriptor::CHILD_ORDERING, track_descriptor::EXPLICIT)?;
            out.write_int32(track_descriptor::SIBLING_ORDER_RANK, track.rank)
        })?;
        self.packet(None, trace_packet::TRACK_DESCRIPTOR)
    }

    /// A slice begins on a track, at a time in ns.
    pub fn begin(
        &mut self,
        at: u64,
        track: u64,
        name: &str,
        category: &str,
        details: &[Detail<'_>],
    ) -> Result<()> {
        self.event(
            track_event::SLICE_BEGIN,
            at,
            track,
            Some((name, category)),
            details,
        )
    }

    /// The slice on a track that began last ends.
    pub fn end(&mut self, at: u64, track: u64) -> Result<()> {
        self.event(track_event::SLICE_END, at, track, None, &[])
    }

    /// Something happens on a track.
    pub fn instant(&mut self, at: u64, track: u64, name: &str, category: &str) -> Result<()> {
        self.event(track_event::INSTANT, at, track, Some((name, category)), &[])
    }

    fn event(
        &mut self,
        kind: i32,
        at: u64,
        track: u64,
        name: Option<(&str, &str)>,
        details: &[Detail<'_>],
    ) -> Result<()> {
        let mut annotation = Vec::new();
        message(&mut self.inner, |out| {
            out.write_enum(track_event::TYPE, kind)?;
            out.write_uint64(track_event::TRACK_UUID, track)?;
            if let Some((name, category)) = name {
                out.write_string(track_event::CATEGORIES, category)?;
                out.write_string(track_event::NAME, name)?;
            }
            for detail in details {
                message(&mut annotation, |out| match detail {
                    Detail::Number(name, value) => {
                        out.write_string(debug_annotation::NAME, name)?;
                        out.write_int64(debug_annotation::INT_VALUE, *value)
                    }
                    Detail::Text(name, text) => {
                        out.write_string(debug_annotation::NAME, name)?;
                        out.write_string(debug_annotation::STRING_VALUE, text)
                    }
                })?;
                out.write_bytes(track_event::DEBUG_ANNOTATIONS, &annotation)?;
            }
            Ok(())
        })?;
        self.packet(Some(at), trace_packet::TRACK_EVENT)
    }

    /// Writes a packet whose field `field` is the message in `inner`.
    fn packet(&mut self, at: Option<u64>, field: u32) -> Result<()> {
        let (inner, first) = (&self.inner, self.first);
        message(&mut self.body, |out| {
            if let Some(at) = at {
                out.write_uint64(trace_packet::TIMESTAMP, at)?;
            }
            out.write_uint32(trace_packet::TRUSTED_PACKET_SEQUENCE_ID, 1)?;
            if first {
                out.write_uint32(
                    trace_packet::SEQUENCE_FLAGS,
                    trace_packet::SEQ_INCREMENTAL_STATE_CLEARED,
                )?;
            }
            out.write_bytes(field, inner)
        })?;
        self.first = false;
        let body = &self.body;
        message(&mut self.inner, |out| out.write_bytes(trace::PACKET, body))?;
        Ok(self.out.write_all(&self.inner)?)
    }

    /// Writes what is still in memory.
    pub fn flush(&mut self) -> Result<()> {
        Ok(self.out.flush()?)
    }
}
