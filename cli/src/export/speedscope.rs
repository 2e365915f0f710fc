//! The file format of speedscope (<https://www.speedscope.app/file-format-schema.json>).

use std::collections::HashMap;

use serde::Serialize;

use crate::summary::Stack;
use crate::symbols::Named;

#[derive(Debug, Serialize)]
pub(crate) struct File<'s> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'static str,
    name: String,
    shared: Shared<'s>,
    profiles: [Profile; 2],
}

#[derive(Debug, Serialize)]
struct Shared<'s> {
    frames: Vec<Frame<'s>>,
}

#[derive(Debug, Serialize)]
struct Frame<'s> {
    name: &'s str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'s str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    r#type: &'static str,
    name: &'static str,
    unit: &'static str,
    start_value: f64,
    end_value: f64,
    /// Indices of frames, the outermost first.
    samples: Vec<Vec<usize>>,
    weights: Vec<f64>,
}

/// The stacks by bytes and by objects.
pub(crate) fn file(process: u64, stacks: &[Stack]) -> File<'_> {
    let mut frames = Vec::new();
    let mut indices = HashMap::<&Named, usize>::new();
    let samples: Vec<Vec<usize>> = stacks
        .iter()
        .map(|stack| {
            let index = |named| {
                *indices.entry(named).or_insert_with(|| {
                    frames.push(frame(named));
                    frames.len() - 1
                })
            };
            stack.outermost_first().map(index).collect()
        })
        .collect();
    let profile = |name, unit, weights: Vec<f64>| Profile {
        r#type: "sampled",
        name,
        unit,
        start_value: 0.0,
        end_value: weights.iter().sum(),
        samples: samples.clone(),
        weights,
    };
    File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: concat!("tripoint ", env!("CARGO_PKG_VERSION")),
        name: format!("process {process}"),
        profiles: [
            profile("allocated bytes", "bytes", stacks.iter().map(|stack| stack.bytes).collect()),
            profile("allocated objects", "none", stacks.iter().map(|stack| stack.objects).collect()),
        ],
        shared: Shared { frames },
    }
}

fn frame(named: &Named) -> Frame<'_> {
    let (file, line) = named.file_and_line().unzip();
    Frame { name: &named.function, file, line }
}
