//! What the machine runs on.

use std::fs;
use std::path::Path;

/// Where Linux tells.
const SUPPLIES: &str = "/sys/class/power_supply";

/// Whether the machine runs on its battery; not where nobody knows.
pub(super) fn is_on_battery() -> bool {
    is_discharging(Path::new(SUPPLIES))
}

/// Whether the machine's own battery is being emptied. Those of mice and headphones don't count.
fn is_discharging(supplies: &Path) -> bool {
    let Ok(entries) = fs::read_dir(supplies) else {
        return false;
    };
    let told = |path: &Path, what: &str| fs::read_to_string(path.join(what)).unwrap_or_default();
    entries.flatten().map(|entry| entry.path()).any(|supply| {
        told(&supply, "type").trim() == "Battery"
            && told(&supply, "scope").trim() != "Device"
            && told(&supply, "status").trim() == "Discharging"
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn only_the_machines_own_battery_counts() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_discharging(&folder.path().join("none")));
        let supply = |name: &str, files: &[(&str, &str)]| {
            let path = folder.path().join(name);
            fs::create_dir_all(&path).unwrap();
            for (file, text) in files {
                fs::write(path.join(file), format!("{text}\n")).unwrap();
            }
        };
        supply("AC", &[("type", "Mains"), ("online", "0")]);
        supply(
            "mouse",
            &[
                ("type", "Battery"),
                ("scope", "Device"),
                ("status", "Discharging"),
            ],
        );
        supply("BAT0", &[("type", "Battery"), ("status", "Charging")]);
        assert!(!is_discharging(folder.path()));
        supply("BAT0", &[("type", "Battery"), ("status", "Discharging")]);
        assert!(is_discharging(folder.path()));
    }
}
