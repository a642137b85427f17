//! What is varied: the machine, the cost of the kernel, and the refill after a switch.

/// CPU time in microseconds by which demand grows after a switch, the points of the table.
pub const REFILLS: [u32; 6] = [0, 20, 50, 100, 200, 500];

/// The same, in the order in which they are measured.
const MOST_TELLING: [u32; 6] = [0, 500, 100, 50, 200, 20];

/// The largest shift of virtual time: an instruction takes 4 ns.
pub const MOST_SHIFT: u32 = 2;

/// A VM's CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Its name in results.
    pub name: &'static str,
    /// What it is, for the page.
    pub about: &'static str,
    /// Its CPUs, for `vm/run`.
    pub option: [&'static str; 2],
    /// Number of CPUs.
    pub cpus: u32,
    /// By how many times as much demand grows after a switch to another socket.
    pub far: u32,
}

/// The machines of the tables.
pub const MACHINES: [Machine; 2] = [
    Machine {
        name: "4",
        about: "4 CPUs that share a last-level cache",
        option: ["--cpus", "4"],
        cpus: 4,
        far: 1,
    },
    Machine {
        name: "2x2x2",
        about:
            "8 CPUs: 2 sockets (each a NUMA node with a last-level cache) of 2 cores with 2 threads",
        option: ["--topology", "2x2x2"],
        cpus: 8,
        far: 2,
    },
];

/// One machine, at one cost of the kernel, with one refill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// The machine.
    pub machine: &'static Machine,
    /// An instruction takes 2 to this power ns of virtual time.
    pub shift: u32,
    /// The refill after a switch, in microseconds.
    pub refill_us: u32,
}

impl Point {
    /// `faasbench run --refill`.
    pub fn refill(&self) -> String {
        let (near, far) = (self.refill_us, self.refill_us * self.machine.far);
        match self.machine.far {
            1 => near.to_string(),
            _ => format!("{near},{near},{far},{far}"),
        }
    }

    /// The folder of its runs.
    pub fn folder(&self) -> String {
        let (name, shift, refill) = (self.machine.name, self.shift, self.refill_us);
        format!("cpus-{name}-shift-{shift}-refill-{refill}")
    }

    /// What it is, for messages.
    pub fn told(&self) -> String {
        format!(
            "CPUs {}, shift {}, refill {} us",
            self.machine.name, self.shift, self.refill_us
        )
    }
}

/// All points of each machine, the most telling first: so an unfinished run has most of what
/// matters.
pub fn all() -> Vec<Point> {
    let mut points = Vec::new();
    for machine in &MACHINES {
        points.extend(MOST_TELLING.map(|refill_us| Point {
            machine,
            shift: 0,
            refill_us,
        }));
        points.extend((1..=MOST_SHIFT).map(|shift| Point {
            machine,
            shift,
            refill_us: 0,
        }));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_point_has_a_folder_of_its_own() {
        let all = all();
        let folders: HashSet<String> = all.iter().map(Point::folder).collect();
        assert_eq!(folders.len(), all.len());
        assert_eq!(all.len(), 16);
    }

    #[test]
    fn each_refill_is_measured() {
        let mut order = MOST_TELLING;
        order.sort_unstable();
        assert_eq!(order, REFILLS);
    }

    #[test]
    fn another_socket_costs_more() {
        let refill = |machine: usize| {
            Point {
                machine: &MACHINES[machine],
                shift: 0,
                refill_us: 50,
            }
            .refill()
        };
        assert_eq!(
            (refill(0), refill(1)),
            ("50".into(), "50,50,100,100".into())
        );
    }
}
