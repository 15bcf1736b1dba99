use broker::*;
use bytes::{Bytes, BytesMut};
use std::sync::Arc;
use std::time::Instant;
use store::*;
struct Null { n: CommitId, spare: Vec<WriteSet> }
struct NoRead;
impl Reader for NoRead { fn read(&self, _: CommitId, _: &Query) -> Result<Vec<StoredMessage>, StoreError> { Ok(vec![]) } }
impl Store for Null {
    fn submit(&mut self, w: WriteSet) -> CommitId { drop(w); self.n = self.n.next(); self.n }
    fn durable(&self) -> CommitId { self.n }
    fn failure(&self) -> Option<StoreError> { None }
    fn is_nearly_full(&self) -> bool { false }
    fn reader(&self) -> Arc<dyn Reader> { Arc::new(NoRead) }
    fn recover(&mut self) -> Result<Recovery, StoreError> { Ok(Recovery::default()) }
}
fn main() {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let q = EntityId(1);
    let now = |ms: u64| Now { wall: Wall(1_700_000_000_000 + ms), mono: Mono(ms) };
    let mut shard = Shard::open(BrokerSettings::default(), Box::new(Null { n: CommitId(0), spare: vec![] }), now(0)).unwrap();
    let (mut say, mut reads) = (Vec::new(), Vec::new());
    let c = ConnectionId(1);
    let rid = RequestId { connection: c, token: 0 };
    let r = ReceiverId { connection: c, link: 0 };
    let mut cmds = vec![
        Command::EnsureQueue { request: rid, namespace: NamespaceId(0), path: "q".into(), settings: QueueSettings{ max_size: u64::MAX, ..Default::default()} },
        Command::Attach { receiver: r, entity: q, subqueue: Subqueue::Main, mode: ReceiveMode::PeekLock },
    ];
    shard.turn(now(0), &mut cmds, &mut say, &mut reads);
    let batch = 256u32; let turns = 4000u32;
    let buffer = BytesMut::from(&vec![0u8; 300 * 1024][..]).freeze();
    let start = Instant::now();
    let mut limit = 0u32;
    let mut t_send = 0u128; let mut t_settle = 0u128; let mut ms = 0;
    let backlog = mode == "backlog"; let depth = 64u32;
    let mut lives = 0u64;
    for turn in 0..turns {
        ms += 1;
        let mut send: Vec<Command> = (0..batch as usize).map(|i| {
            let payload: Bytes = buffer.slice(i * 1024..(i + 1) * 1024);
            Command::Send { request: rid, entity: q, messages: vec![Incoming { payload, ttl_ms: None }] }
        }).collect();
        let do_recv = !backlog || turn >= depth;
        if do_recv {
            limit = limit.wrapping_add(batch);
            send.insert(0, Command::Credit { receiver: r, limit, drain: false });
        }
        let t = Instant::now();
        shard.turn(now(ms), &mut send, &mut say, &mut reads);
        t_send += t.elapsed().as_nanos();
        let mut bytes = 0;
        let mut settle: Vec<Command> = Vec::with_capacity(300);
        for o in say.drain(..) {
            if let Output::Deliver { delivery, .. } = o {
                bytes += delivery.size();
                settle.push(Command::Settle { request: Some(rid), entity: q, subqueue: Subqueue::Main, token: delivery.token, outcome: Outcome::Complete });
            }
        }
        lives += settle.len() as u64;
        settle.push(Command::Written { connection: c, bytes });
        let t = Instant::now();
        shard.turn(now(ms), &mut settle, &mut say, &mut reads);
        t_settle += t.elapsed().as_nanos();
        say.clear();
        assert!(reads.is_empty());
    }
    let n = (batch * turns) as f64;
    println!("lives {lives} total {:.0} ns/msg; send+deliver turn {:.0}; settle turn {:.0}", start.elapsed().as_nanos() as f64 / n, t_send as f64 / n, t_settle as f64 / n);
}
