//! The measurement plan: settings of `make bench`, each with its own folder.
//! Figures that need the same setting share it and its rows.

/// Requests in SFS's own list.
pub const LIST: u32 = 10_083;

/// CPUs of the paper's experiments with it.
pub const LIST_CPUS: u32 = 12;

/// The size of the measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Invocations per setting.
    pub invocations: u32,
    /// Invocations of the headline.
    pub headline: u32,
    /// CPUs of the virtual machine.
    pub cpus: u32,
    /// Seed of the workloads.
    pub seed: u64,
    /// Requests of SFS's own list, from its front; `None`: all.
    pub list: Option<u32>,
    /// Which Table I: `table1` or `table1-artefact`.
    pub table1: &'static str,
}

/// The source of a setting's trace.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// A workload of `faasbench gen` with options.
    Generated {
        /// The workload.
        workload: &'static str,
        /// Offered load.
        load: f64,
        /// Factor on the durations.
        scale: f64,
        /// More options, separated by spaces.
        options: String,
    },
    /// A list of fc-microbenchmark, converted.
    Fc {
        /// The list's name without folder and `.txt`.
        list: &'static str,
        /// Offered load.
        load: f64,
        /// Factor on the durations.
        scale: f64,
        /// The duration to use: `--figure` of `faasbench convert fc`.
        figure: &'static str,
    },
    /// The front of the SFS artefact's list of requests, converted.
    List {
        /// Factor on the arrivals.
        multiplier: u32,
        /// Number of requests; `None`: all.
        first: Option<u32>,
    },
}

impl Source {
    /// Its name, for the line that says what was measured.
    pub fn name(&self) -> String {
        match self {
            Self::Generated {
                workload,
                scale,
                options,
                ..
            } => {
                let mut name = (*workload).to_string();
                if *scale != 1.0 {
                    name += &format!(" x {scale}");
                }
                if !options.is_empty() {
                    name += &format!(" {options}");
                }
                name
            }
            Self::Fc { list, figure, .. } => format!("{list} ({figure})"),
            Self::List { .. } => "SFS's list".to_string(),
        }
    }
}

/// One row: a scheduler, optionally with a label, and its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its name, as `make bench` takes it.
    pub name: &'static str,
    /// Its options.
    pub options: &'static str,
}

/// A row without options.
pub const fn row(name: &'static str) -> Row {
    Row { name, options: "" }
}

/// A row with options.
pub const fn with(name: &'static str, options: &'static str) -> Row {
    Row { name, options }
}

/// One comparison of `make bench`.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Its folder.
    pub name: String,
    /// A short title, for headings.
    pub title: String,
    /// Its trace.
    pub source: Source,
    /// Its rows.
    pub rows: Vec<Row>,
    /// Number of invocations.
    pub invocations: u32,
    /// Number of CPUs.
    pub cpus: u32,
}

impl Setting {
    /// Table I of the SFS paper, unscaled, at this load.
    pub fn table1(size: Size, load: f64, rows: &[Row]) -> Self {
        Self::generated(size, size.table1, load, rows)
    }

    /// A workload of `faasbench gen`, unscaled, at this load.
    pub fn generated(size: Size, workload: &'static str, load: f64, rows: &[Row]) -> Self {
        Self {
            name: format!("{workload}-load{load:.2}"),
            title: format!("load {load:?}"),
            source: Source::Generated {
                workload,
                load,
                scale: 1.0,
                options: String::new(),
            },
            rows: rows.to_vec(),
            invocations: size.invocations,
            cpus: size.cpus,
        }
    }

    /// SFS's own list on 12 CPUs, with this factor on its arrivals.
    ///
    /// The paper's appendix has 12 of 16 vCPUs and factors of 7 to 13.
    pub fn list(size: Size, multiplier: u32, rows: &[Row]) -> Self {
        Self {
            name: format!("list-x{multiplier}"),
            title: format!("x{multiplier}"),
            source: Source::List {
                multiplier,
                first: size.list,
            },
            rows: rows.to_vec(),
            invocations: size.list.unwrap_or(LIST),
            cpus: LIST_CPUS,
        }
    }

    /// The same, with more options of the workload.
    pub fn with_options(mut self, name: &str, title: &str, more: &str) -> Self {
        self.name = format!("{}-{name}", self.name);
        self.title = format!("{}, {title}", self.title);
        if let Source::Generated { options, .. } = &mut self.source {
            *options = more.to_string();
        }
        self
    }
}
