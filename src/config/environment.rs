//! The layer of the environment: one `PLATEN_…` variable for each flag. A variable that is set to nothing
//! counts as not set.

use std::collections::BTreeMap;
use std::ffi::OsString;

use toml::Value;

use super::problem::ConfigProblem;
use super::settings::{Kind, SETTINGS, Setting, fits};
use super::{LayerRead, Origin};

/// The variables of this process that name a setting.
#[must_use]
pub fn variables() -> BTreeMap<String, OsString> {
    SETTINGS
        .iter()
        .filter_map(|setting| setting.variable)
        .filter_map(|name| Some((name.to_owned(), std::env::var_os(name)?)))
        .collect()
}

/// The layer that the variables make, and every variable whose value its setting can't take.
#[must_use]
pub fn read(variables: &BTreeMap<String, OsString>) -> LayerRead {
    let mut read = LayerRead::default();
    for setting in &SETTINGS {
        let Some(name) = setting.variable else {
            continue;
        };
        let Some(text) = variables.get(name).filter(|text| !text.is_empty()) else {
            continue;
        };
        let origin = Origin::Environment(name);
        match parse(setting, text) {
            Ok(value) => {
                read.layer.insert(setting.name.to_owned(), (value, origin));
            }
            Err(message) => read.problems.push(ConfigProblem::new(origin, message)),
        }
    }
    read
}

fn parse(setting: &Setting, text: &OsString) -> Result<Value, String> {
    let text = text
        .to_str()
        .ok_or_else(|| format!("{} is not UTF-8 text", setting.name))?;
    let refused = || {
        format!(
            "{} is {text:?}; it must be {}",
            setting.name, setting.expects
        )
    };
    let value = match setting.kind {
        Kind::Text => Value::String(text.to_owned()),
        Kind::Whole => Value::Integer(text.trim().parse().map_err(|_| refused())?),
        Kind::Number => Value::Float(text.trim().parse().map_err(|_| refused())?),
        Kind::Switch => Value::Boolean(text.trim().parse().map_err(|_| refused())?),
        Kind::List => Value::Array(vec![Value::String(text.to_owned())]),
    };
    if fits(setting.name, &value) {
        Ok(value)
    } else {
        Err(refused())
    }
}
