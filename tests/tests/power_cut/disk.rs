//! The files of a log with all their past: each page, length and name in every version it had, and from when on which
//! version is safe from a power cut.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use crate::log::{Event, Inode, Log, Moment, Record};
use crate::recording::inode_of;

/// What a disk keeps or loses as a whole.
pub const PAGE: usize = 4096;

/// What is believed of a disk. A control takes one of them away.
#[derive(Clone, Copy, PartialEq)]
pub struct Trust {
    /// `fsync` and `fdatasync` of a file.
    pub file_syncs: bool,
    /// Writes to a descriptor with `O_DSYNC`.
    pub synced_writes: bool,
    /// `fsync` of a folder.
    pub folder_syncs: bool,
}

impl Trust {
    pub const ALL: Trust = Trust { file_syncs: true, synced_writes: true, folder_syncs: true };
}

/// A value that was written.
pub struct Version<T> {
    /// It may be on disk after this moment.
    pub begin: Moment,
    /// The call had returned at this moment.
    end: Moment,
    /// It, or a later one, is on disk after this moment.
    pub safe: Option<Moment>,
    pub value: T,
}

/// One file.
#[derive(Default)]
pub struct DiskFile {
    pub lengths: Vec<Version<usize>>,
    pub pages: Vec<Vec<Version<Box<[u8]>>>>,
    syncs: Vec<(Moment, Moment)>,
}

/// Names that change together: a rename takes one away and gives another.
pub type Names = Vec<(String, Option<usize>)>;

/// One folder.
#[derive(Default)]
pub struct DiskFolder {
    pub changes: Vec<Version<Names>>,
    now: BTreeMap<String, usize>,
    syncs: Vec<(Moment, Moment)>,
}

/// A file or a folder.
pub enum Node {
    File(DiskFile),
    Folder(DiskFolder),
}

/// All files and folders; the first is the recorded folder itself.
pub struct Disk {
    pub nodes: Vec<Node>,
    by_inode: HashMap<Inode, usize>,
    folder: String,
}

impl Disk {
    /// What the log says of the files below `folder`, which was there, empty, when it began.
    ///
    /// # Panics
    /// When the log contradicts itself.
    pub fn replay(log: &Log, folder: &Path, inode: Inode, trust: Trust) -> Disk {
        Disk::empty(folder, inode).go_on(log, trust)
    }

    fn empty(folder: &Path, inode: Inode) -> Disk {
        let folder = folder.to_str().expect("a path in UTF-8").to_owned();
        let nodes = vec![Node::Folder(DiskFolder::default())];
        Disk { nodes, by_inode: HashMap::from([(inode, 0)]), folder }
    }

    /// All that is below `folder`, safe from the beginning.
    ///
    /// # Panics
    /// When it cannot be read.
    pub fn of_folder(folder: &Path, inode: Inode) -> Disk {
        let mut disk = Disk::empty(folder, inode);
        disk.add_all(folder);
        disk
    }

    fn add_all(&mut self, folder: &Path) {
        const SAFE: Record = Record { begin: 0, end: 0, event: Event::Mark { text: String::new() } };
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.to_str().expect("a path in UTF-8").to_owned();
            let made = inode_of(&path);
            if path.is_dir() {
                self.add(&SAFE, &name, made, Node::Folder(DiskFolder::default()));
                self.add_all(&path);
            } else {
                let mut file = DiskFile::default();
                file.write(&SAFE, 0, &fs::read(&path).expect("a file"), true);
                self.add(&SAFE, &name, made, Node::File(file));
            }
            let (parent, _) = self.parent(&name);
            self.names(parent).changes.iter_mut().for_each(|change| change.safe = Some(0));
        }
    }

    /// With what the log says of it.
    ///
    /// # Panics
    /// When the log contradicts itself.
    pub fn go_on(mut self, log: &Log, trust: Trust) -> Disk {
        for record in &log.records {
            self.apply(record, trust);
        }
        for node in &mut self.nodes {
            node.settle(trust);
        }
        self
    }

    fn apply(&mut self, record: &Record, trust: Trust) {
        match &record.event {
            Event::Write { file, offset, data, synced } => {
                if let Some(file) = self.file(*file) {
                    file.write(record, *offset, data, *synced && trust.synced_writes);
                }
            }
            Event::Truncate { file, length } => {
                if let Some(file) = self.file(*file) {
                    file.truncate(record, *length);
                }
            }
            Event::Sync { of } => match self.by_inode.get(of).map(|&node| &mut self.nodes[node]) {
                Some(Node::File(DiskFile { syncs, .. }) | Node::Folder(DiskFolder { syncs, .. })) => {
                    syncs.push((record.begin, record.end));
                }
                None => {}
            },
            Event::Create { path, made } => self.add(record, path, *made, Node::File(DiskFile::default())),
            Event::Folder { path, made } => self.add(record, path, *made, Node::Folder(DiskFolder::default())),
            Event::Rename { from, to } => {
                let (folder, old) = self.parent(from);
                let (into, new) = self.parent(to);
                assert_eq!(folder, into, "{from} -> {to}: a rename between folders is not modelled");
                let node = self.names(folder).now[&old];
                self.names(folder).change(record, vec![(old, None), (new, Some(node))]);
            }
            Event::Remove { path } => {
                let (folder, name) = self.parent(path);
                self.names(folder).change(record, vec![(name, None)]);
            }
            Event::Sent { .. } | Event::Mark { .. } => {}
        }
    }

    /// None for a file that lies elsewhere.
    fn file(&mut self, inode: Inode) -> Option<&mut DiskFile> {
        match &mut self.nodes[*self.by_inode.get(&inode)?] {
            Node::File(file) => Some(file),
            Node::Folder(_) => None,
        }
    }

    fn names(&mut self, node: usize) -> &mut DiskFolder {
        match &mut self.nodes[node] {
            Node::Folder(folder) => folder,
            Node::File(_) => panic!("a file has no names in it"),
        }
    }

    fn add(&mut self, record: &Record, path: &str, made: Inode, node: Node) {
        let (folder, name) = self.parent(path);
        self.by_inode.insert(made, self.nodes.len());
        let added = self.nodes.len();
        self.nodes.push(node);
        self.names(folder).change(record, vec![(name, Some(added))]);
    }

    /// The folder that a path's last name is in, and that name.
    fn parent(&mut self, path: &str) -> (usize, String) {
        let below = path.strip_prefix(&self.folder).unwrap_or_else(|| panic!("{path} is not below {}", self.folder));
        let mut names: Vec<&str> = below.split('/').filter(|name| !name.is_empty()).collect();
        let last = names.pop().unwrap_or_else(|| panic!("{path} has no name")).to_owned();
        let folder = names.iter().fold(0, |folder, name| {
            *self.names(folder).now.get(*name).unwrap_or_else(|| panic!("{path}: no folder {name:?} was made"))
        });
        (folder, last)
    }
}

impl DiskFile {
    fn length(&self) -> usize {
        self.lengths.last().map_or(0, |length| length.value)
    }

    fn write(&mut self, record: &Record, offset: usize, data: &[u8], synced: bool) {
        let safe = synced.then_some(record.end);
        let end = offset + data.len();
        if end > self.length() {
            self.lengths.push(Version { begin: record.begin, end: record.end, safe, value: end });
        }
        let mut at = offset;
        while at < end {
            let (page, from) = (at / PAGE, at % PAGE);
            let count = (PAGE - from).min(end - at);
            let mut bytes = self.page(page);
            bytes[from..from + count].copy_from_slice(&data[at - offset..at - offset + count]);
            self.pages[page].push(Version { begin: record.begin, end: record.end, safe, value: bytes });
            at += count;
        }
    }

    /// What lies beyond the new length reads as zeros if the file grows again.
    fn truncate(&mut self, record: &Record, length: usize) {
        self.lengths.push(Version { begin: record.begin, end: record.end, safe: None, value: length });
        for page in length / PAGE..self.pages.len() {
            let mut bytes = self.page(page);
            bytes[length.saturating_sub(page * PAGE).min(PAGE)..].fill(0);
            self.pages[page].push(Version { begin: record.begin, end: record.end, safe: None, value: bytes });
        }
    }

    /// A copy of a page as it is now.
    fn page(&mut self, page: usize) -> Box<[u8]> {
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, Vec::new);
        }
        self.pages[page].last().map_or_else(|| vec![0; PAGE].into(), |version| version.value.clone())
    }
}

impl DiskFolder {
    fn change(&mut self, record: &Record, names: Names) {
        for (name, node) in &names {
            match node {
                Some(node) => self.now.insert(name.clone(), *node),
                None => self.now.remove(name),
            };
        }
        self.changes.push(Version { begin: record.begin, end: record.end, safe: None, value: names });
    }
}

impl Node {
    /// Finds out from when on each version is safe.
    fn settle(&mut self, trust: Trust) {
        match self {
            Node::File(file) if trust.file_syncs => {
                file.lengths.iter_mut().for_each(|version| version.settle(&file.syncs));
                file.pages.iter_mut().flatten().for_each(|version| version.settle(&file.syncs));
            }
            Node::Folder(folder) if trust.folder_syncs => {
                folder.changes.iter_mut().for_each(|version| version.settle(&folder.syncs));
            }
            _ => {}
        }
    }
}

impl<T> Version<T> {
    /// A sync makes safe what was complete when it began, and has done so when it ends.
    fn settle(&mut self, syncs: &[(Moment, Moment)]) {
        let covering = syncs.iter().filter(|(begin, _)| *begin > self.end).map(|(_, end)| *end);
        self.safe = self.safe.into_iter().chain(covering).min();
    }

    /// Whether it is safe from a power cut at this moment.
    pub fn safe_at(&self, cut: Moment) -> bool {
        self.safe.is_some_and(|safe| safe < cut)
    }
}
