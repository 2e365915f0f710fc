//! The page of switches, as another process changes it.

use std::fs;

use tripoint_telemetry::Mean;
use tripoint_telemetry::format::{BYTE_ORDER, EventKind, SWITCHES_MAGIC, SWITCHES_WORDS, SwitchWord};
use tripoint_telemetry::reader::{OpenError, Reader, SwitchesFile};

use crate::TemporaryFile;

#[test]
fn switches_are_set_and_read_back() {
    let mut words = [0_u64; SWITCHES_WORDS];
    words[SwitchWord::Magic as usize] = u64::from_ne_bytes(SWITCHES_MAGIC);
    words[SwitchWord::ByteOrder as usize] = BYTE_ORDER;
    words[SwitchWord::Process as usize] = 99;
    words[SwitchWord::Sampling as usize] = 17;
    let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_ne_bytes).collect();
    let path = TemporaryFile::new("data.switches", &bytes);
    let data = path.0.to_str().unwrap().strip_suffix(".switches").unwrap();
    let error = Reader::open(&path.0).unwrap_err();
    assert!(matches!(error, OpenError::AreSwitches { process: 99 }), "{error}");
    let switches = SwitchesFile::open(data).unwrap();
    assert_eq!(switches.process(), 99);
    assert_eq!(switches.sampling().unwrap(), None, "a value that is not allowed");
    switches.set_events([EventKind::Fill, EventKind::Empty]).unwrap();
    switches.set_event(EventKind::Trip, true).unwrap();
    switches.set_event(EventKind::Empty, false).unwrap();
    for kind in EventKind::ALL {
        assert_eq!(switches.is_on(*kind).unwrap(), [EventKind::Fill, EventKind::Trip].contains(kind));
    }
    let mean = Mean::new(1_000).unwrap();
    switches.set_mean(Some(mean)).unwrap();
    switches.set_sampling(Some(true)).unwrap();
    switches.leave_addresses_out(true).unwrap();
    switches.set_point_log(true).unwrap();
    assert_eq!((switches.mean().unwrap(), switches.sampling().unwrap()), (Some(mean), Some(true)));
    assert!(switches.are_addresses_left_out().unwrap() && switches.is_point_log_on().unwrap());
    for sites in [Some(true), Some(false), None] {
        switches.set_sites(sites).unwrap();
        assert_eq!(switches.sites().unwrap(), sites);
    }
    switches.set_mean(None).unwrap();
    switches.set_sampling(None).unwrap();
    assert_eq!((switches.mean().unwrap(), switches.sampling().unwrap()), (None, None));
    // Nothing else of the page changes, nor its length.
    assert_eq!(fs::read(&path.0).unwrap().len(), bytes.len());
    fs::write(&path.0, &bytes[..100]).unwrap();
    assert!(matches!(SwitchesFile::open(data).unwrap_err(), OpenError::Truncated { bytes: 100, .. }));
    fs::write(&path.0, [0; 4_096]).unwrap();
    let error = SwitchesFile::open(data).unwrap_err();
    assert!(matches!(&error, OpenError::NotSwitches { bytes: 4_096, .. }));
    assert!(error.to_string().contains(path.0.to_str().unwrap()), "{error}");
    let error = SwitchesFile::open("/nowhere").unwrap_err().to_string();
    assert!(error.contains(" /nowhere.switches: "), "{error}");
}
