//! The scrape configuration and the alert rules, by Prometheus's own tool.

use std::path::Path;
use std::process::Command;
use std::{fs, str};

use seqtide_tests::prometheus::{given, program};

#[track_caller]
fn promtool(arguments: &[&str], folder: &Path) {
    let ran = Command::new(program("promtool")).args(arguments).current_dir(folder).output().expect("promtool");
    let said = [ran.stdout, ran.stderr].concat();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn the_configuration_and_its_rules_are_sound() {
    promtool(&["check", "config", "prometheus.yml"], &given());
}

#[test]
fn each_alert_fires_at_what_it_is_for_and_at_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/alerts.test.yml");
    let rules = fs::read(given().join("alerts.yml")).expect("the rules");
    let text = fs::read_to_string(&examples).expect("the examples");
    for line in str::from_utf8(&rules).expect("text").lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(text.contains(&format!("alertname=\"{line}\"")), "no example has {line} fire");
    }
    fs::write(folder.path().join("alerts.yml"), rules).expect("the rules");
    fs::write(folder.path().join("alerts.test.yml"), text).expect("the examples");
    promtool(&["test", "rules", "alerts.test.yml"], folder.path());
}
