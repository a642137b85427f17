//! The parsers of the build script accept the known form, and fail on any other
//! instead of leaving something out.

#[path = "../build/bindings.rs"]
mod bindings;
#[path = "../build/counters.rs"]
mod counters;

use bindings::with_conversions;
use counters::to_macro;

fn header(lines: &str) -> String {
    format!("#define SFS_COUNTERS(PUBLISHED, INTERNAL) \\\n{lines}\n\n#endif\n")
}

#[test]
fn counters_are_listed_in_order() {
    let lines = "\tPUBLISHED(IN_DEBT, \"Times\") \\\n\tINTERNAL(NS) /* a sum */ \\\n\t\
                 PUBLISHED(MOVED, \"Tasks (all)\")";
    let list = to_macro(&header(lines)).unwrap();
    assert!(list.contains("in_debt = sfs_counter_SFS_IN_DEBT: \"Times\",\n"));
    assert!(list.contains("moved = sfs_counter_SFS_MOVED: \"Tasks (all)\",\n"));
    assert_eq!(list.matches("sfs_counter_SFS_").count(), 2, "{list}");
}

#[test]
fn a_line_that_is_not_a_counter_fails_the_build() {
    for lines in [
        "",
        "\tINTERNAL(NS)",
        "\tPUBLISHED(in_debt, \"Times\")",
        "\tPUBLISHED(IN_DEBT)",
        "\tPUBLISHED(IN_DEBT, \"Times\", 1)",
        "\tPUBLISHED(IN_DEBT, \"Ti\" \"mes\")",
        "\tPUBLISHED(MOVED, \"Tasks\") \\\n\tOTHER(IN_DEBT)",
    ] {
        assert!(to_macro(&header(lines)).is_err(), "{lines}");
    }
    assert!(to_macro("#define OTHER\n").is_err());
}

#[test]
fn either_all_structs_get_conversions_or_none() {
    let one = "#[repr(C)]\n#[derive(Debug, Copy, Clone)]\npub struct sfs_span {}\n";
    let with = with_conversions(one).unwrap();
    assert!(with.contains("::zerocopy::IntoBytes") && with.ends_with(one));
    let other = format!("{one}#[repr(C, packed)]\npub struct sfs_event {{}}\n");
    assert_eq!(with_conversions(&other), None);
    assert_eq!(with_conversions("pub const SFS_BUCKETS: u32 = 90;\n"), None);
}
