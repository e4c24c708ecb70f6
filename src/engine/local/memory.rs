//! Whether a model and its context fit into the memory that is free, worked out before anything is loaded: afterwards
//! the system would swap, or kill.

use std::fs;
use std::path::{Path, PathBuf};

use crate::engine::event::EngineError;
use crate::llama::context::ContextParams;
use crate::models::estimate::{KvLayout, WindowCache};
use crate::models::parts::ModelFiles;
use crate::text::grouped;

/// Contexts are told in steps of this many tokens.
const STEP: u64 = 256;

/// What a model with a context needs, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Need {
    /// The weights.
    pub weights: u64,
    /// The cache of the whole context.
    pub cache: u64,
    /// What computing one ubatch takes; an estimate.
    pub compute: u64,
}

impl Need {
    /// The need of a model with a context.
    pub(super) fn of(files: &ModelFiles, layout: &KvLayout, params: &ContextParams) -> Need {
        Need {
            weights: files.tensor_bytes,
            cache: cache(layout, params, u64::from(params.context)),
            compute: compute(files, params),
        }
    }

    fn total(self) -> u64 {
        self.weights
            .saturating_add(self.cache)
            .saturating_add(self.compute)
    }
}

fn cache(layout: &KvLayout, params: &ContextParams, context: u64) -> u64 {
    let types = (params.type_k, params.type_v);
    let windows = WindowCache::of(params.swa_cache, params.ubatch);
    layout.capacity_bytes(context, types, windows)
}

/// llama.cpp sets the logits of a whole ubatch aside, besides a few activations: 4 bytes × ubatch × (vocabulary + the
/// widest layer + some embeddings). That is 0.97 of what it takes for SmolLM2 135M (109.6 MiB) and 0.98 for Gemma 3
/// 270M (534.3 MiB).
fn compute(files: &ModelFiles, params: &ContextParams) -> u64 {
    let number = |key: &str| files.first.arch_u64(key).unwrap_or(0);
    let embedding = number("embedding_length").min(1 << 20);
    let row = files
        .first
        .vocab_size()
        .unwrap_or(0)
        .saturating_add(number("feed_forward_length").min(1 << 24))
        .saturating_add(embedding.saturating_mul(6));
    row.saturating_mul(4)
        .saturating_mul(u64::from(params.ubatch))
}

/// Refuses what does not fit into `free` bytes, with the largest context that does.
pub(super) fn check(
    need: Need,
    layout: &KvLayout,
    params: &ContextParams,
    free: u64,
) -> Result<(), EngineError> {
    if need.total() <= free {
        return Ok(());
    }
    let message = format!(
        "A context of {} tokens does not fit: {} of weights, {} of cache and about {} for computing make {}; {} are free.",
        grouped(u64::from(params.context)),
        size(need.weights),
        size(need.cache),
        size(need.compute),
        size(need.total()),
        size(free)
    );
    let beside = need.weights.saturating_add(need.compute);
    let fits = |context: u64| beside.saturating_add(cache(layout, params, context)) <= free;
    let steps = u64::from(params.context) / STEP;
    // The largest number of steps that fits; the cost grows with the context.
    let (mut low, mut high) = (0, steps + 1);
    while high - low > 1 {
        let middle = u64::midpoint(low, high);
        if fits(middle * STEP) {
            low = middle;
        } else {
            high = middle;
        }
    }
    let hint = if low == 0 {
        "Choose a smaller model, or free memory; --force loads it anyway, slowly at best."
            .to_owned()
    } else {
        format!(
            "--ctx {} fits, smaller --kv-type-k and --kv-type-v allow more; --force loads it anyway.",
            low * STEP
        )
    };
    Err(EngineError::new(message, hint))
}

fn size(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    if bytes < 10 << 30 {
        format!("{} MiB", grouped(bytes.div_ceil(MIB)))
    } else {
        format!("{} GiB", grouped(bytes >> 30))
    }
}

/// Where a Linux system tells what is free.
pub(super) struct System {
    proc: PathBuf,
    cgroups: PathBuf,
}

impl System {
    pub(super) fn here() -> System {
        System {
            proc: "/proc".into(),
            cgroups: "/sys/fs/cgroup".into(),
        }
    }

    /// The bytes that this process can have without swapping: what the machine has free, and no more than what the
    /// limits of its control groups and its own leave. `None` where the system does not say.
    pub(super) fn free(&self) -> Option<u64> {
        let limits = [self.group_free(), self.address_space_free()];
        let machine = self.available()?;
        Some(limits.into_iter().flatten().fold(machine, u64::min))
    }

    fn available(&self) -> Option<u64> {
        kib_of(&self.read("meminfo")?, "MemAvailable:")
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.proc.join(name)).ok()
    }

    /// What the limit on the address space (`ulimit -v`) leaves.
    fn address_space_free(&self) -> Option<u64> {
        let limits = self.read("self/limits")?;
        let line = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max address space"))?;
        let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
        let used = kib_of(&self.read("self/status")?, "VmSize:")?;
        Some(limit.saturating_sub(used))
    }

    /// What the control groups of this process leave, from its own up to the root: the least of them. File pages that
    /// the group could give up count as free.
    fn group_free(&self) -> Option<u64> {
        let groups = self.read("self/cgroup")?;
        let mut least: Option<u64> = None;
        for line in groups.lines() {
            let mut fields = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) =
                (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let (root, files) = if controllers.is_empty() {
                (self.cgroups.clone(), VERSION_2)
            } else if controllers.split(',').any(|name| name == "memory") {
                (self.cgroups.join("memory"), VERSION_1)
            } else {
                continue;
            };
            for folder in Path::new(path.trim_start_matches('/')).ancestors() {
                let left = left_in(&root.join(folder), &files);
                least = match (least, left) {
                    (Some(least), Some(left)) => Some(least.min(left)),
                    (least, left) => least.or(left),
                };
            }
        }
        least
    }
}

/// The files of a control group.
struct GroupFiles {
    limits: [&'static str; 2],
    used: &'static str,
    reclaimable: &'static str,
}

const VERSION_2: GroupFiles = GroupFiles {
    limits: ["memory.max", "memory.high"],
    used: "memory.current",
    reclaimable: "inactive_file",
};

const VERSION_1: GroupFiles = GroupFiles {
    limits: ["memory.limit_in_bytes", "memory.soft_limit_in_bytes"],
    used: "memory.usage_in_bytes",
    reclaimable: "total_inactive_file",
};

/// What a group leaves; `None` where it has no limit.
fn left_in(folder: &Path, files: &GroupFiles) -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        fs::read_to_string(folder.join(name))
            .ok()?
            .trim()
            .parse()
            .ok()
    };
    // "max", or a number near 2^63 in version 1, means none.
    let limit = files
        .limits
        .iter()
        .filter_map(|name| number(name))
        .filter(|limit| *limit < 1 << 60)
        .min()?;
    let used = number(files.used)?;
    let statistics = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let reclaimable = statistics
        .lines()
        .find_map(|line| line.strip_prefix(files.reclaimable)?.trim().parse().ok())
        .unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(reclaimable)))
}

/// The bytes on the line of a file of `/proc` that begins so and counts in KiB.
fn kib_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::engine::options::{FlashAttention, KvType, SwaCache};
    use crate::models::tiny_gguf::{TinyKind, write_in};

    const GIB: u64 = 1 << 30;

    fn params(context: u32) -> ContextParams {
        ContextParams {
            context,
            batch: 512,
            ubatch: 512,
            sequences: 1,
            threads_decode: 1,
            threads_prefill: 1,
            type_k: KvType::F16,
            type_v: KvType::F16,
            flash_attention: FlashAttention::Auto,
            swa_cache: SwaCache::Full,
        }
    }

    fn layout() -> (tempfile::TempDir, ModelFiles, KvLayout) {
        let folder = tempfile::tempdir().unwrap();
        let files = ModelFiles::open(&write_in(TinyKind::Llama, folder.path())).unwrap();
        let layout = KvLayout::of(&files.first).unwrap();
        (folder, files, layout)
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_sizes_and_the_largest_context_that_does() {
        let (_folder, _, layout) = layout();
        let params = params(131_072);
        let need = Need {
            weights: 5 * GIB,
            cache: cache(&layout, &params, 131_072),
            compute: 100 << 20,
        };
        let free = 5 * GIB + (100 << 20) + cache(&layout, &params, 40_960);
        check(need, &layout, &params, need.total()).unwrap();
        let error = check(need, &layout, &params, free).unwrap_err();
        assert!(
            error
                .message
                .starts_with("A context of 131,072 tokens does not fit: 5,120 MiB of weights, "),
            "{error}"
        );
        assert!(error.hint.starts_with("--ctx 40960 fits"), "{}", error.hint);
        let error = check(need, &layout, &params, free - 1).unwrap_err();
        assert!(error.hint.starts_with("--ctx 40704 fits"), "{}", error.hint);
        let error = check(need, &layout, &params, 4 * GIB).unwrap_err();
        assert!(
            error.hint.starts_with("Choose a smaller model"),
            "{}",
            error.hint
        );
    }

    #[test]
    fn no_size_overflows() {
        let (_folder, files, layout) = layout();
        let params = params(u32::MAX);
        let need = Need {
            weights: u64::MAX,
            ..Need::of(&files, &layout, &params)
        };
        assert!(check(need, &layout, &params, u64::MAX - 1).is_err());
    }

    /// A system whose files say this.
    fn system(files: &[(&str, &str)]) -> (tempfile::TempDir, System) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let system = System {
            proc: folder.path().join("proc"),
            cgroups: folder.path().join("cgroup"),
        };
        (folder, system)
    }

    const MEMINFO: (&str, &str) = (
        "proc/meminfo",
        "MemTotal:       16000000 kB\nMemAvailable:    8388608 kB\n",
    );

    #[test]
    fn the_machine_s_free_memory_counts_where_nothing_else_limits() {
        let (_folder, bare) = system(&[MEMINFO]);
        assert_eq!(bare.free(), Some(8 * GIB));
        let (_folder, unlimited) = system(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/user\n"),
            ("cgroup/user/memory.max", "max\n"),
            ("cgroup/user/memory.current", "5\n"),
            (
                "proc/self/limits",
                "Max address space         unlimited            unlimited            bytes\n",
            ),
        ]);
        assert_eq!(unlimited.free(), Some(8 * GIB));
        let (_folder, silent) = system(&[]);
        assert_eq!(silent.free(), None);
    }

    #[test]
    fn the_tightest_control_group_counts_and_file_pages_are_free() {
        let (_folder, nested) = system(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/outer/inner\n"),
            ("cgroup/outer/inner/memory.max", "4294967296\n"),
            ("cgroup/outer/inner/memory.current", "1073741824\n"),
            ("cgroup/outer/memory.max", "2147483648\n"),
            ("cgroup/outer/memory.current", "2147483648\n"),
            (
                "cgroup/outer/memory.stat",
                "anon 5\ninactive_file 1073741824\n",
            ),
        ]);
        assert_eq!(nested.free(), Some(GIB));
        let (_folder, first_version) = system(&[
            MEMINFO,
            ("proc/self/cgroup", "9:cpu:/x\n5:memory:/docker/1\n"),
            (
                "cgroup/memory/docker/1/memory.limit_in_bytes",
                "2147483648\n",
            ),
            (
                "cgroup/memory/docker/1/memory.soft_limit_in_bytes",
                "9223372036854771712\n",
            ),
            (
                "cgroup/memory/docker/1/memory.usage_in_bytes",
                "1073741824\n",
            ),
        ]);
        assert_eq!(first_version.free(), Some(GIB));
    }

    #[test]
    fn a_limit_on_the_address_space_counts() {
        let (_folder, limited) = system(&[
            MEMINFO,
            (
                "proc/self/limits",
                "Limit                     Soft Limit           Hard Limit           Units\n\
                 Max address space         3221225472           unlimited            bytes\n",
            ),
            ("proc/self/status", "VmPeak:  9 kB\nVmSize:\t 1048576 kB\n"),
        ]);
        assert_eq!(limited.free(), Some(2 * GIB));
    }
}
