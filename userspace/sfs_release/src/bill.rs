//! Bills of materials, by CycloneDX 1.5 (<https://cyclonedx.org/docs/1.5/json/>).

use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::crates::{self, Crate};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Bill {
    bom_format: &'static str,
    spec_version: &'static str,
    version: u32,
    metadata: Metadata,
    components: Vec<Component>,
}

#[derive(Serialize)]
struct Metadata {
    component: Component,
}

#[derive(Serialize)]
struct Component {
    r#type: &'static str,
    name: String,
    version: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    licenses: Vec<Licence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    purl: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hashes: Vec<Hash>,
}

#[derive(Serialize)]
struct Licence {
    expression: String,
}

#[derive(Serialize)]
struct Hash {
    alg: &'static str,
    content: String,
}

impl Component {
    fn new(r#type: &'static str, one: Crate, checksum: Option<&String>) -> Self {
        // In older manifests, a slash means OR.
        let expression = one.licence.replace('/', " OR ");
        let licences = (!expression.is_empty()).then_some(Licence { expression });
        let purl = || format!("pkg:cargo/{}@{}", one.name, one.version.replace('+', "%2B"));
        let hash = |content: &String| Hash {
            alg: "SHA-256",
            content: content.clone(),
        };
        Self {
            r#type,
            licenses: licences.into_iter().collect(),
            purl: checksum.map(|_| purl()),
            hashes: checksum.map(hash).into_iter().collect(),
            name: one.name,
            version: one.version,
        }
    }
}

/// Returns the bill of materials of `program`.
///
/// # Errors
///
/// cargo does not list the program's crates, or the lock file cannot be read.
pub fn of(workspace: &Path, program: &str) -> Result<String> {
    let checksums = crates::checksums(workspace)?;
    let (mut own, mut components) = (None, Vec::new());
    for one in crates::of(workspace, &[program])? {
        let checksum = checksums.get(&(one.name.clone(), one.version.clone()));
        if one.name == program {
            own = Some(Component::new("application", one, checksum));
        } else {
            components.push(Component::new("library", one, checksum));
        }
    }
    let component = own.with_context(|| format!("cargo tree does not list {program}"))?;
    let bill = Bill {
        bom_format: "CycloneDX",
        spec_version: "1.5",
        version: 1,
        metadata: Metadata { component },
        components,
    };
    Ok(serde_json::to_string_pretty(&bill)? + "\n")
}
