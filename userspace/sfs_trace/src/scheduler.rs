//! The scheduler that runs: finds the maps of scx_sfs in the kernel, and where their fields are.

use std::collections::HashMap;
use std::fs;

use anyhow::{bail, ensure, Context, Result};
use libbpf_rs::btf::types::{DataSec, MemberAttr, Struct};
use libbpf_rs::btf::{Btf, BtfType, HasSize};
use libbpf_rs::query::{MapInfo, MapInfoIter, ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};

const SCHED_EXT: &str = "/sys/kernel/sched_ext";

/// Prefix of the name of scx_sfs in the kernel.
const OURS: &str = "sfs_";

/// A program of scx_sfs that uses its maps.
const PROGRAM: &str = "sfs_enqueue";

/// What is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loaded {
    /// The kernel's own scheduler.
    KernelsOwn,
    /// Another sched_ext scheduler, with its name.
    Other(String),
    /// scx_sfs, with its name.
    ScxSfs(String),
}

impl Loaded {
    /// Returns what is loaded now.
    pub fn now() -> Self {
        let read = |file| fs::read_to_string(format!("{SCHED_EXT}/{file}")).unwrap_or_default();
        let (state, ops) = (read("state"), read("root/ops"));
        match (state.trim(), ops.trim()) {
            ("" | "disabled", _) | (_, "") => Self::KernelsOwn,
            (_, name) if name.starts_with(OURS) => Self::ScxSfs(name.into()),
            (_, name) => Self::Other(name.into()),
        }
    }

    /// Returns its name for people.
    pub fn name(&self) -> &str {
        match self {
            Self::KernelsOwn => "the kernel's own scheduler",
            Self::Other(name) => name,
            Self::ScxSfs(_) => "scx_sfs",
        }
    }
}

/// Returns the number of schedulers loaded since boot; it changes with each.
pub fn generation() -> String {
    let read = |file| fs::read_to_string(format!("{SCHED_EXT}/{file}")).unwrap_or_default();
    read("enable_seq") + &read("state") + &read("root/ops")
}

/// Places of fields in bytes. The names are those of the program's variables (`trace.bpf.c`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Places {
    /// In `struct task_ctx`.
    pub turn: u32,
    pub sandbox: u32,
    pub own: u32,
    /// In `struct invocation`.
    pub arrived: u32,
    pub function: u32,
    pub seq: u32,
    pub open: u32,
    /// In `struct sandbox`.
    pub shared: u32,
}

/// The maps of a running scx_sfs.
pub struct Contexts {
    /// Each task's context.
    pub tasks: MapHandle,
    /// Each sandbox, with the invocation if that is the unit.
    pub sandboxes: MapHandle,
    /// Where their fields are.
    pub places: Places,
    /// `enum sfs_unit`.
    pub unit: u32,
}

impl Contexts {
    /// Finds the maps of the scx_sfs that runs.
    ///
    /// # Errors
    ///
    /// They are not there, or not of the form that this program reads.
    pub fn find() -> Result<Self> {
        let options = ProgInfoQueryOptions::default().include_map_ids(true);
        let programs = ProgInfoIter::with_query_opts(options);
        // While a scheduler is replaced, the programs of the old one may still be there.
        let program = programs
            .filter(|program| program.name == PROGRAM)
            .max_by_key(|program| program.id)
            .context(
                "the kernel lists no BPF program of the running scx_sfs: it has just been \
                 unloaded, or this process lacks CAP_SYS_ADMIN; try again as root",
            )?;
        let maps: HashMap<u32, MapInfo> = MapInfoIter::default()
            .filter(|map| program.map_ids.contains(&map.id))
            .map(|map| (map.id, map))
            .collect();
        let find = |what: &str, wanted: &dyn Fn(&MapInfo) -> bool| {
            let map = maps.values().find(|map| wanted(map));
            map.with_context(|| other_version(&format!("it has no {what}")))
        };
        let tasks = find("map of tasks' contexts", &|map| {
            map.ty == MapType::TaskStorage && map.name == "task_ctxs"
        })?;
        let sandboxes = find("map of sandboxes", &|map| map.name == "sandboxes")?;
        let constants = find("constants", &|map| {
            map.name.to_string_lossy().ends_with(".rodata")
        })?;
        let types = Btf::from_prog_id(program.id)
            .context("the type information of the running scx_sfs cannot be read")?;
        let places = places(&types, tasks.value_size, sandboxes.value_size)?;
        let open = |id| MapHandle::from_map_id(id).context("a map of scx_sfs cannot be opened");
        Ok(Self {
            tasks: open(tasks.id)?,
            sandboxes: open(sandboxes.id)?,
            places,
            unit: constant(&types, &open(constants.id)?, "unit")?,
        })
    }
}

fn other_version(what: &str) -> String {
    format!(
        "the running scx_sfs keeps its tasks in another form than this program reads ({what}): \
         use the scx_sfs of the version that runs"
    )
}

/// Returns the places of all fields, in the types that scx_sfs was loaded with.
fn places(types: &Btf<'_>, task_bytes: u32, sandbox_bytes: u32) -> Result<Places> {
    let task = Fields::of(types, "task_ctx")?;
    let invocation = Fields::of(types, "invocation")?;
    let sandbox = Fields::of(types, "sandbox")?;
    task.check_size(task_bytes)?;
    sandbox.check_size(sandbox_bytes)?;
    Ok(Places {
        turn: task.place("turn", 4)?,
        sandbox: task.place("sandbox", 8)?,
        own: task.place("own", invocation.bytes)?,
        arrived: invocation.place("arrived_at", 8)?,
        function: invocation.place("function", 8)?,
        seq: invocation.place("seq", 4)?,
        open: invocation.place("open", 4)?,
        shared: sandbox.place("inv", invocation.bytes)?,
    })
}

/// The fields of a struct.
struct Fields<'a> {
    name: &'a str,
    bytes: u32,
    fields: HashMap<String, (u32, u32)>,
}

impl<'a> Fields<'a> {
    fn of(types: &Btf<'_>, name: &'a str) -> Result<Self> {
        let structure = types
            .type_by_name::<Struct<'_>>(name)
            .with_context(|| other_version(&format!("no struct {name}")))?;
        let mut fields = HashMap::new();
        for member in structure.iter() {
            let MemberAttr::Normal { offset } = member.attr else {
                continue;
            };
            let Some(name) = member.name else {
                continue;
            };
            let bytes = types
                .type_by_id::<BtfType<'_>>(member.ty)
                .map_or(0, size_of);
            fields.insert(name.to_string_lossy().into_owned(), (offset / 8, bytes));
        }
        Ok(Self {
            name,
            bytes: structure.size() as u32,
            fields,
        })
    }

    fn place(&self, field: &str, bytes: u32) -> Result<u32> {
        match self.fields.get(field) {
            Some((place, found)) if *found == bytes => Ok(*place),
            Some((_, found)) => bail!(other_version(&format!(
                "{field} of struct {} has {found} bytes, not {bytes}",
                self.name
            ))),
            None => bail!(other_version(&format!(
                "no {field} in struct {}",
                self.name
            ))),
        }
    }

    fn check_size(&self, bytes: u32) -> Result<()> {
        ensure!(
            self.bytes == bytes,
            other_version(&format!(
                "struct {} has {} bytes, its map {bytes}",
                self.name, self.bytes
            ))
        );
        Ok(())
    }
}

/// Returns the size of a type in bytes; 0: unknown.
fn size_of(of: BtfType<'_>) -> u32 {
    use libbpf_rs::btf::types::{Enum, Int};
    let of = of.skip_mods_and_typedefs();
    if let Ok(int) = Int::try_from(of) {
        return u32::from(int.bits) / 8;
    }
    if let Ok(structure) = Struct::try_from(of) {
        return structure.size() as u32;
    }
    Enum::try_from(of).map_or(0, |number| number.size() as u32)
}

/// Returns a constant of four bytes that scx_sfs was loaded with.
fn constant(types: &Btf<'_>, constants: &MapHandle, name: &str) -> Result<u32> {
    let missing = || other_version(&format!("no constant {name}"));
    let section = types
        .type_by_name::<DataSec<'_>>(".rodata")
        .with_context(missing)?;
    let place = section
        .iter()
        .find(|variable| {
            let of = types.type_by_id::<BtfType<'_>>(variable.ty);
            of.and_then(|of| of.name()).is_some_and(|own| own == name)
        })
        .filter(|variable| variable.size == 4)
        .with_context(missing)?
        .offset as usize;
    let bytes = constants
        .lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)
        .context("the constants of scx_sfs cannot be read")?
        .with_context(missing)?;
    let bytes = bytes.get(place..place + 4).with_context(missing)?;
    Ok(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}
