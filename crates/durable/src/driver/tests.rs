//! Tests of the driver with a fake loop.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::mpsc;

use super::*;

/// What the loop reported to its host.
#[derive(Debug, Default)]
struct Counts {
    claimed: AtomicU32,
    failed: Mutex<Vec<String>>,
}

impl Host for Counts {
    fn activated(&self, claimed: usize) {
        self.claimed.fetch_add(u32::try_from(claimed).unwrap(), Ordering::SeqCst);
    }

    fn failed(&self, error: String) {
        self.failed.lock().unwrap().push(error);
    }

    fn jitter(&self) -> f64 {
        0.5
    }
}

/// Hands out what is queued; reports each item that was worked on.
#[derive(Debug)]
struct Queue {
    queued: Mutex<Vec<u32>>,
    refusals: AtomicU32,
    limits: Mutex<Vec<u32>>,
    done: mpsc::UnboundedSender<u32>,
}

#[async_trait]
impl Loop for Queue {
    type Item = u32;

    async fn claim(&self, limit: u32) -> Result<Vec<u32>, Failure> {
        if self.refusals.load(Ordering::SeqCst) > 0 {
            self.refusals.fetch_sub(1, Ordering::SeqCst);
            return Err("database is away".to_owned().into());
        }
        self.limits.lock().unwrap().push(limit);
        let mut queued = self.queued.lock().unwrap();
        let count = queued.len().min(usize::try_from(limit).unwrap());
        Ok(queued.drain(..count).collect())
    }

    async fn work(&self, items: Vec<u32>, _lease: Lease) -> Vec<String> {
        for item in &items {
            assert_ne!(*item, 13, "unlucky");
            self.done.send(*item).unwrap();
        }
        items.iter().filter(|item| **item == 4).map(|item| format!("{item} failed")).collect()
    }
}

struct Running {
    queue: Arc<Queue>,
    counts: Arc<Counts>,
    wake: Arc<Notify>,
    stop: watch::Sender<bool>,
    done: mpsc::UnboundedReceiver<u32>,
    task: tokio::task::JoinHandle<()>,
}

fn start(items: Vec<u32>, refusals: u32, pacing: Pacing) -> Running {
    let (sender, done) = mpsc::unbounded_channel();
    let queue = Arc::new(Queue {
        queued: Mutex::new(items),
        refusals: AtomicU32::new(refusals),
        limits: Mutex::new(Vec::new()),
        done: sender,
    });
    let counts = Arc::new(Counts::default());
    let wake = Arc::new(Notify::new());
    let (stop, shutdown) = Shutdown::channel();
    let host: Arc<dyn Host> = Arc::clone(&counts) as _;
    let task = tokio::spawn(drive(Arc::clone(&queue), pacing, Arc::clone(&wake), host, shutdown));
    Running { queue, counts, wake, stop, done, task }
}

async fn receive(running: &mut Running, count: usize) -> Vec<u32> {
    let mut received = Vec::new();
    for _ in 0..count {
        received.push(running.done.recv().await.unwrap());
    }
    received.sort_unstable();
    received
}

/// Polling would take an hour: only wakes and full batches make progress.
const LONG_TIMEOUT: Pacing = Pacing { slots: 4, batch: 3, poll: Duration::from_secs(3_600) };

#[tokio::test]
async fn it_claims_no_more_than_fits_and_goes_on_while_batches_are_full() {
    let mut running = start((1..=7).collect(), 0, LONG_TIMEOUT);
    assert_eq!(receive(&mut running, 7).await, (1..=7).collect::<Vec<_>>());
    assert!(running.queue.limits.lock().unwrap().iter().all(|limit| *limit <= 3));
    running.stop.send(true).unwrap();
    running.task.await.unwrap();
    let failed = running.counts.failed.lock().unwrap();
    assert_eq!(running.counts.claimed.load(Ordering::SeqCst), 7);
    assert_eq!(*failed, ["4 failed"], "item 4 failed alone");
}

/// Each item alone; the first ends only when it is told to.
#[derive(Debug)]
struct OneByOne {
    queued: Mutex<Vec<u32>>,
    first_may_end: Notify,
    done: mpsc::UnboundedSender<u32>,
}

#[async_trait]
impl Loop for OneByOne {
    type Item = u32;
    const ALONE: bool = true;

    async fn claim(&self, limit: u32) -> Result<Vec<u32>, Failure> {
        let mut queued = self.queued.lock().unwrap();
        let count = queued.len().min(usize::try_from(limit).unwrap());
        Ok(queued.drain(..count).collect())
    }

    async fn work(&self, items: Vec<u32>, _lease: Lease) -> Vec<String> {
        assert_eq!(items.len(), 1);
        if items == [1] {
            self.first_may_end.notified().await;
        }
        self.done.send(items[0]).unwrap();
        Vec::new()
    }
}

#[tokio::test]
async fn an_item_that_takes_long_occupies_one_slot() {
    let (done, mut ended) = mpsc::unbounded_channel();
    let queued = Mutex::new(vec![1, 2, 3, 4]);
    let work = Arc::new(OneByOne { queued, first_may_end: Notify::new(), done });
    let (stop, shutdown) = Shutdown::channel();
    let pacing = Pacing { slots: 2, batch: 2, ..LONG_TIMEOUT };
    let host: Arc<dyn Host> = Arc::new(Counts::default());
    let task = tokio::spawn(drive(Arc::clone(&work), pacing, Arc::default(), host, shutdown));
    for item in [2, 3, 4] {
        assert_eq!(ended.recv().await, Some(item), "in the other slot");
    }
    work.first_may_end.notify_one();
    assert_eq!(ended.recv().await, Some(1));
    stop.send(true).unwrap();
    task.await.unwrap();
}

#[tokio::test]
async fn a_wake_is_enough() {
    let mut running = start(Vec::new(), 0, LONG_TIMEOUT);
    running.queue.queued.lock().unwrap().push(5);
    running.wake.notify_one();
    assert_eq!(receive(&mut running, 1).await, [5]);
    running.stop.send(true).unwrap();
    running.task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_fails_is_tried_again_and_shown() {
    let mut running = start(vec![9], 3, LONG_TIMEOUT);
    assert_eq!(receive(&mut running, 1).await, [9]);
    assert_eq!(*running.counts.failed.lock().unwrap(), ["database is away"; 3]);
    running.stop.send(true).unwrap();
    running.task.await.unwrap();
}

#[tokio::test]
async fn a_panic_ends_one_batch_and_not_the_loop() {
    let mut running = start(vec![13], 0, LONG_TIMEOUT);
    running.wake.notify_one();
    until_failed(&running.counts).await;
    running.queue.queued.lock().unwrap().push(6);
    running.wake.notify_one();
    assert_eq!(receive(&mut running, 1).await, [6]);
    running.stop.send(true).unwrap();
    running.task.await.unwrap();
}

async fn until_failed(counts: &Counts) {
    tokio::time::timeout(Duration::from_secs(10), async {
        while counts.failed.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the panic is counted");
}

#[test]
fn an_error_is_logged_once_until_it_changes() {
    let mut logged = LogOnce::default();
    assert!(!logged.is_over(), "nothing was logged");
    let news = ["away", "away", "full", "full", "away"].map(|error| logged.is_news(error));
    assert_eq!(news, [true, false, true, false, true]);
    assert!(logged.is_over() && !logged.is_over());
    assert!(logged.is_news("away"), "it came back");
}
