//! What is varied: the machine, the cost of the kernel, and the refill after a switch.

/// CPU time in microseconds by which demand grows after a switch, the points of the table.
pub const REFILLS: [u32; 6] = [0, 20, 50, 100, 200, 500];

/// The largest shift of virtual time: an instruction takes 4 ns.
pub const MOST_SHIFT: u32 = 2;

/// A VM's CPUs, and what costs how much there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Its name in results.
    pub name: &'static str,
    /// The name of the machine that is the same without refills.
    pub base: &'static str,
    /// What it is, for the page.
    pub about: &'static str,
    /// Its CPUs, for `vm/run`.
    pub option: [&'static str; 2],
    /// Number of CPUs.
    pub cpus: u32,
    /// By how many times R demand grows after a switch on the same CPU, to another CPU, cache
    /// and node.
    pub times: [u32; 4],
    /// The refills, in the order in which they are measured: the most telling first.
    refills: &'static [u32],
    /// The costs of the kernel that are measured without refills, as shifts.
    shifts: &'static [u32],
}

/// The machines of the tables.
pub const MACHINES: [Machine; 4] = [
    Machine {
        name: "4",
        base: "4",
        about: "4 CPUs that share a last-level cache; R for each switch",
        option: ["--cpus", "4"],
        cpus: 4,
        times: [1, 1, 1, 1],
        refills: &[0, 500, 100, 50, 200, 20],
        shifts: &[1, 2],
    },
    Machine {
        name: "4-moves",
        base: "4",
        about: "4 CPUs that share a last-level cache; R only for switches to another CPU",
        option: ["--cpus", "4"],
        cpus: 4,
        times: [0, 1, 1, 1],
        refills: &[500],
        shifts: &[],
    },
    Machine {
        name: "2x2x2",
        base: "2x2x2",
        about: "8 CPUs: 2 sockets (each a NUMA node with a last-level cache) of 2 cores with 2 \
                threads; R for each switch, 2 x R between sockets",
        option: ["--topology", "2x2x2"],
        cpus: 8,
        times: [1, 1, 2, 2],
        refills: &[0, 500, 100, 50, 200, 20],
        shifts: &[1, 2],
    },
    Machine {
        name: "2x2x2-moves",
        base: "2x2x2",
        about: "the same 8 CPUs; R only for switches to another CPU, 2 x R between sockets",
        option: ["--topology", "2x2x2"],
        cpus: 8,
        times: [0, 1, 2, 2],
        refills: &[500],
        shifts: &[],
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
        let amounts = self.machine.times.map(|times| times * self.refill_us);
        amounts.map(|us| us.to_string()).join(",")
    }

    /// The name of its machine in results: without refills that of the base.
    pub fn name(&self) -> &'static str {
        match self.refill_us {
            0 => self.machine.base,
            _ => self.machine.name,
        }
    }

    /// The folder of its runs.
    pub fn folder(&self) -> String {
        let (name, shift, refill) = (self.name(), self.shift, self.refill_us);
        format!("cpus-{name}-shift-{shift}-refill-{refill}")
    }

    /// What it is, for messages.
    pub fn told(&self) -> String {
        format!(
            "CPUs {}, shift {}, refill {} us",
            self.name(),
            self.shift,
            self.refill_us
        )
    }
}

/// All points, those of one machine after those of another.
pub fn all() -> Vec<Point> {
    let mut points = Vec::new();
    for machine in &MACHINES {
        let refills = machine.refills.iter().map(|refill_us| (0, *refill_us));
        let costs = machine.shifts.iter().map(|shift| (*shift, 0));
        points.extend(refills.chain(costs).map(|(shift, refill_us)| Point {
            machine,
            shift,
            refill_us,
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
        assert_eq!(all.len(), 18);
    }

    #[test]
    fn each_refill_of_the_table_is_measured() {
        for machine in MACHINES.iter().filter(|one| one.name == one.base) {
            let mut order = machine.refills.to_vec();
            order.sort_unstable();
            assert_eq!(order, REFILLS);
            assert_eq!(machine.shifts.last(), Some(&MOST_SHIFT));
        }
    }

    #[test]
    fn kinds_of_switches_have_their_times_of_r() {
        let point = |machine: usize, refill_us| Point {
            machine: &MACHINES[machine],
            shift: 0,
            refill_us,
        };
        assert_eq!(point(0, 50).refill(), "50,50,50,50");
        assert_eq!(point(3, 500).refill(), "0,500,1000,1000");
        assert_eq!(
            (point(3, 500).name(), point(3, 0).name()),
            ("2x2x2-moves", "2x2x2")
        );
    }
}
