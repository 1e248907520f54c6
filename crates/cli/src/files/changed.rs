//! Events of the file system, by inotify: that something in some folders changed, not what.
//! Whoever waits looks again by itself from time to time: there are no events on other systems,
//! on some mounted volumes, and beyond the limit of watches.

use std::path::PathBuf;

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::Events;
#[cfg(target_os = "linux")]
pub(super) use linux::Events;

/// How deep folders are watched, as deep as they are read.
const MOST_DEPTH: usize = 32;

/// These paths with the folders that they are in, and all folders in them. The one that a path
/// is in tells that it was replaced, as git-sync does with its link.
fn folders(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in paths {
        found.extend(path.parent().map(|parent| match parent.as_os_str().is_empty() {
            true => PathBuf::from("."),
            false => parent.to_owned(),
        }));
        walk(path, 0, &mut found);
    }
    found
}

fn walk(path: &std::path::Path, depth: usize, found: &mut Vec<PathBuf>) {
    if depth > MOST_DEPTH || !path.is_dir() {
        return;
    }
    found.push(path.to_owned());
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        walk(&entry.path(), depth + 1, found);
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::PathBuf;
    use std::sync::{Arc, Weak};
    use std::time::Duration;

    use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
    use tokio::sync::Notify;

    /// A burst of events, such as a checkout, is one change.
    const BURST: Duration = Duration::from_millis(200);

    /// Without a queue, if the system gives none, it never tells anything.
    #[derive(Debug)]
    pub(in super::super) struct Events {
        queue: Option<Arc<OwnedFd>>,
        told: Arc<Notify>,
    }

    impl Events {
        pub(in super::super) fn new() -> Self {
            let told = Arc::new(Notify::new());
            let queue = inotify::init(CreateFlags::CLOEXEC).ok().map(Arc::new);
            let reader = queue.clone().and_then(|queue| {
                let told = Arc::downgrade(&told);
                // A read waits for the next event, which no runtime should do.
                let read = move || read(&queue, &told);
                std::thread::Builder::new().name("file-events".to_owned()).spawn(read).ok()
            });
            Self { queue: queue.filter(|_| reader.is_some()), told }
        }

        /// Watches the folders of these paths, also those that are new since the last call.
        pub(in super::super) fn watch(&self, paths: &[PathBuf]) {
            let Some(queue) = &self.queue else { return };
            let flags = WatchFlags::CLOSE_WRITE
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVE
                | WatchFlags::ATTRIB;
            for folder in super::folders(paths) {
                // A folder may be gone by now; beyond the limit of watches the next look helps.
                let _ = inotify::add_watch(queue, &folder, flags);
            }
        }

        /// Returns when something changed since it returned last.
        pub(in super::super) async fn changed(&self) {
            self.told.notified().await;
            tokio::time::sleep(BURST).await;
        }
    }

    /// Ends with the first event after nobody waits any more.
    fn read(queue: &OwnedFd, told: &Weak<Notify>) {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 4_096];
        let mut reader = Reader::new(queue, &mut buffer);
        while reader.next().is_ok() {
            let Some(told) = told.upgrade() else { return };
            told.notify_one();
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::path::PathBuf;

    #[derive(Debug)]
    pub(in super::super) struct Events;

    impl Events {
        pub(in super::super) fn new() -> Self {
            Self
        }

        pub(in super::super) fn watch(&self, _paths: &[PathBuf]) {}

        pub(in super::super) async fn changed(&self) {
            std::future::pending().await
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Long enough for any machine; the test waits only if an event is lost.
    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn a_change_is_told_wherever_it_is() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("folder");
        std::fs::create_dir_all(folder.join("deep/deeper")).unwrap();
        let events = Events::new();
        let told = async || {
            events.watch(std::slice::from_ref(&folder));
            tokio::time::timeout(LIMIT, events.changed()).await
        };
        events.watch(std::slice::from_ref(&folder));
        std::fs::write(folder.join("deep/deeper/a.yaml"), "a").unwrap();
        told().await.expect("a new file");
        std::fs::create_dir(folder.join("new")).unwrap();
        told().await.expect("a new folder");
        events.watch(std::slice::from_ref(&folder));
        std::fs::write(folder.join("new/b.yaml"), "b").unwrap();
        told().await.expect("a file in a new folder");
        std::fs::rename(&folder, root.path().join("old")).unwrap();
        told().await.expect("the folder itself is replaced");
    }
}
