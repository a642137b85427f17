//! `faasbench convert`.

use crate::place::Place;

#[test]
fn a_request_list_is_converted_and_its_bad_lines_are_shown() {
    let place = Place::new();
    place.write(
        "list.txt",
        "fib1 fib.py 27 5 1\nbroken\nfib2 fib.py 20 6 2\n",
    );
    let output = place.faasbench("convert sfs list.txt --multiplier 2 -o t.csv");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success());
    assert!(
        said.contains("list.txt:2: want 5 fields, found 1, skipped"),
        "{said}"
    );
    assert!(
        said.contains("2 requests converted, 1 lines skipped"),
        "{said}"
    );
    let want = "arrival_us,function,phases\n10000,fib27,cpu:60000\n12000,fib20,cpu:13000\n";
    assert_eq!(place.read("t.csv"), want);
}

const DURATIONS: &str =
    "HashOwner,HashApp,HashFunction,Average,percentile_Average_0,percentile_Average_100\n\
     o,a,often,2,1,3\no,a,seldom,50,50,50\no,a,broken,x,x,x\n";

const COUNTS: &str = "HashOwner,HashApp,HashFunction,Trigger,1,2,3\n\
                      o,a,often,http,40,40,40\no,a,seldom,timer,0,1,9\no,a,none,http,1,1,1\n";

#[test]
fn azures_files_are_joined_and_stretched_to_a_load() {
    let place = Place::new();
    place.write("i.csv", COUNTS);
    place.write("d.csv", DURATIONS);
    let files = "convert azure --invocations i.csv --durations d.csv";
    let output = place.faasbench(&format!("{files} --load 0.9 --cpus 2 -o t.csv"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    for part in [
        "d.csv:4: `x` is not a number of milliseconds, skipped",
        "i.csv:4: this function has no durations, skipped",
        "130 of 130 invocations converted, of 2 functions; rows skipped: 1 of invocations, 1 of durations; \
         without durations: 3 invocations; without invocations: 0 functions",
        "offered load 0.900 on 2 CPUs",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let text = place.read("t.csv");
    assert_eq!(text.lines().count(), 131);
    // By default it is the files' own time.
    let own = place.succeed(&format!("{files} --minutes 2..3 --cap-top 0.5 --scale 2"));
    assert_eq!(own.lines().count(), 21);
    assert!(own.contains(",seldom,cpu:100000\n"), "{own}");
    let again = place.succeed(&format!("{files} --load 0.9 --cpus 2"));
    assert_eq!(again, text);
    let picked = place.succeed(&format!("{files} --functions 1 --pick sample --drop-top 1"));
    assert_eq!(picked.lines().count(), 11);
}

#[test]
fn conversions_are_cut_and_scaled() {
    let place = Place::new();
    let list: String = (0..9)
        .map(|n| format!("f f.py 20 {} {n}\n", 5 * n))
        .collect();
    place.write("list.txt", &list);
    let command = "convert sfs list.txt --multiplier 1 --skip 2 --first 3";
    let text = place.succeed(&format!("{command} --scale 2"));
    let header = "arrival_us,function,phases";
    let want =
        format!("{header}\n0,fib20,cpu:26000\n5000,fib20,cpu:26000\n10000,fib20,cpu:26000\n");
    assert_eq!(text, want);
    let text = place.succeed(&format!("{command} --load 0.5 --cpus 3"));
    // Two gaps for three invocations of 13 ms on half of three CPUs.
    let want =
        format!("{header}\n0,fib20,cpu:13000\n13000,fib20,cpu:13000\n26000,fib20,cpu:13000\n");
    assert_eq!(text, want);
}

#[test]
fn an_fc_list_is_converted_by_its_baselines() {
    let place = Place::new();
    place.write("list.txt", "0, 1000000, 0.5 \n9, 1, 1\n0, 7, 0.25 \n");
    place.write(
        "baselines.txt",
        "workloadID, workload argument, run, tFC, tVM\n0,7,0,30,20\n0,7,1,32,20\n",
    );
    let output = place.faasbench("convert fc list.txt --figure tvm");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("list.txt:2: program `9` is more than 2, skipped"));
    assert!(said.contains("list.txt:3: no baseline is known for primes-7, skipped"));
    assert!(
        said.contains("1 requests converted, 2 lines skipped"),
        "{said}"
    );
    let header = "arrival_us,function,phases\n";
    let want = format!("{header}500000,primes-1000000,cpu:188000\n");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), want);
    let waits = place.succeed("convert fc list.txt --figure start-waits");
    let want = format!("{header}500000,primes-1000000,io:2962500;cpu:723000\n");
    assert_eq!(waits, want);
    let own = place.succeed("convert fc list.txt --baselines baselines.txt --first 1");
    assert_eq!(own, format!("{header}1750000,primes-7,cpu:31000\n"));
}
