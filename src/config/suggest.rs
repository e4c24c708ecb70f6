//! The nearest name that exists, for the hint of an error about one that does not.

use super::settings::{SETTINGS, TABLES, split};

const NEAR_ENOUGH: f64 = 0.8;

/// The valid key or table nearest to `name` (`sampling.temprature`), if any is near. A key that stands in the
/// wrong table, or that is called as its flag is, is found as well.
#[must_use]
pub fn nearest_key(name: &str) -> Option<&'static str> {
    let keys = SETTINGS.iter().map(|setting| {
        let own = strsim::jaro_winkler(split(setting.name).1, last(name));
        let flag = setting.flag.map_or(0.0, |flag| {
            strsim::jaro_winkler(&flag.trim_start_matches('-').replace('-', "_"), last(name))
        });
        let whole = if setting.name == name {
            1.0
        } else {
            strsim::jaro_winkler(setting.name, name) * 0.99
        };
        (own.max(flag).max(whole), setting.name)
    });
    let tables = TABLES
        .into_iter()
        .filter(|_| !name.contains('.'))
        .map(|table| (strsim::jaro_winkler(table, name), table));
    best(keys.chain(tables))
}

/// The keys that may stand where `name` stands; at the top level the tables as well.
#[must_use]
pub fn siblings(name: &str) -> Vec<String> {
    let table = split(name).0;
    let keys = SETTINGS.iter().map(|setting| split(setting.name));
    let keys = keys
        .filter(|(of, _)| *of == table)
        .map(|(_, key)| key.to_owned());
    let tables = TABLES
        .iter()
        .filter(|_| table.is_empty())
        .map(|table| format!("[{table}]"));
    keys.chain(tables).collect()
}

/// The nearest of `names`, if any is near.
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    best(
        names
            .into_iter()
            .map(|candidate| (strsim::jaro_winkler(candidate, name), candidate)),
    )
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn best<'a>(scored: impl Iterator<Item = (f64, &'a str)>) -> Option<&'a str> {
    scored
        .filter(|(score, _)| *score >= NEAR_ENOUGH)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, name)| name)
}
