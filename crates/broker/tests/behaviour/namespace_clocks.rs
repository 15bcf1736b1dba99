//! Clocks of namespaces: what time does in one namespace while it stands still in its neighbour.
//!
//! That everything goes by the clock of its namespace, every script tells (`script/clock.rs`).

use broker::{
    Access, Answer, BrokerSettings, Command, ConnectionId, Ensured, FaultEffect, FaultMatch,
    FaultRule, Incoming, InjectedError, NamespaceAnswer, NamespaceDefinition, NamespaceOrder,
    Operation, Order, Outcome, Output, QueueSettings, ReceiveMode, RefusalReport, RetryTime,
    Subqueue, SubqueueId, TransactionId, Wall,
};
use bytes::Bytes;
use store::{EntityId, NamespaceId};

use crate::world::{World, receiver, request};

const DEFAULT: NamespaceId = NamespaceId(0);
const SECOND: u64 = 1_000;
const HOUR: u64 = 60 * 60 * SECOND;
const DAY: u64 = 24 * HOUR;

/// Two namespaces with the same queue: that of `left` is the one whose time passes.
struct Pair {
    world: World,
    left: NamespaceId,
    queues: [EntityId; 2],
}

impl Pair {
    fn new(settings: &QueueSettings) -> Self {
        let mut world = World::empty(BrokerSettings::default());
        let [left, right] = ["left", "right"].map(|name| create(&mut world, name));
        let queues = [left, right].map(|namespace| ensure(&mut world, namespace, settings));
        Self {
            world,
            left,
            queues,
        }
    }

    /// Both queues are asked for the same, each by a connection of its own.
    fn both<T>(&mut self, each: impl Fn(&mut World, EntityId, u64) -> T) -> [T; 2] {
        let Self { world, queues, .. } = self;
        [(0, 1), (1, 2)].map(|(index, connection)| each(world, queues[index], connection))
    }

    /// Time passes on the left, from one deadline to the next.
    fn advance(&mut self, ms: u64) {
        advance(&mut self.world, self.left, ms);
    }

    fn active(&self) -> [u64; 2] {
        let broker = &self.world.shard.broker;
        self.queues
            .map(|id| broker.queue(id).map_or(0, |it| it.active))
    }
}

fn turn(world: &mut World, command: Command) -> Vec<Output> {
    let mut said = world.turn(command);
    while let Some(answer) = world.answer(0) {
        said.append(&mut world.turn(answer));
    }
    said
}

fn advance(world: &mut World, namespace: NamespaceId, ms: u64) -> Vec<Output> {
    let (mut left, mut said) = (ms, Vec::new());
    loop {
        let (first, now) = (world.shard.broker.deadline_in(namespace), world.now());
        let mono = first.mono.map(|at| at.0.saturating_sub(now.mono.0));
        let wall = first.wall.map(|at| at.0.saturating_sub(now.wall.0));
        let ms = mono.into_iter().chain(wall).min().unwrap_or(left).min(left);
        left -= ms;
        said.append(&mut turn(world, Command::AdvanceClock { namespace, ms }));
        if left == 0 {
            return said;
        }
    }
}

fn order(world: &mut World, namespace: NamespaceId, order: Order) -> Answer {
    let said = turn(
        world,
        Command::Administer {
            request: request(1),
            namespace,
            order: Box::new(order),
        },
    );
    let mut answers = said.into_iter().filter_map(|output| match output {
        Output::Administered { result, .. } => Some(*result),
        _ => None,
    });
    answers.next().unwrap().unwrap()
}

fn create(world: &mut World, name: &str) -> NamespaceId {
    let definition = Box::new(NamespaceDefinition {
        name: name.to_owned(),
        ..NamespaceDefinition::default()
    });
    let like = None;
    let create = Order::Namespaces(NamespaceOrder::Create { definition, like });
    match order(world, DEFAULT, create) {
        Answer::Namespaces(NamespaceAnswer::One(description)) => description.id,
        other => panic!("{other:?}"),
    }
}

fn ensure(world: &mut World, namespace: NamespaceId, settings: &QueueSettings) -> EntityId {
    let queue = Ensured::Queue {
        path: "q".to_owned(),
        settings: settings.clone(),
    };
    order(world, namespace, Order::ensure(vec![queue]));
    let mut queues = world.shard.broker.queues_of(namespace, world.now());
    queues.next().unwrap().id
}

fn send(world: &mut World, entity: EntityId, change: impl Fn(&mut Incoming)) -> Vec<Output> {
    let mut message = Incoming {
        payload: Bytes::from_static(b"\x00\x53\x75\xa0\x01x"),
        // As AMQP writes it: the string `m`.
        message_id: Some(Bytes::from_static(b"\xa1\x01m")),
        ..Incoming::default()
    };
    change(&mut message);
    let (request, messages) = (request(2), vec![message]);
    let command = Command::Send {
        request,
        entity,
        messages,
    };
    turn(world, command)
}

fn place(entity: EntityId) -> SubqueueId {
    let subqueue = Subqueue::Main;
    SubqueueId { entity, subqueue }
}

/// Receives with a lock: the token, if a message is delivered at once.
fn receive(world: &mut World, entity: EntityId, connection: u64) -> Option<broker::LockToken> {
    let receiver = receiver(connection);
    turn(
        world,
        Command::Attach {
            receiver,
            subqueue: place(entity),
            access: Access::Consume(ReceiveMode::PeekLock),
            selector: None,
        },
    );
    let (limit, drain) = (1, false);
    let said = turn(
        world,
        Command::Credit {
            receiver,
            limit,
            drain,
        },
    );
    said.into_iter().find_map(|output| match output {
        Output::Deliver { delivery, .. } => Some(delivery.token),
        _ => None,
    })
}

fn settle(world: &mut World, entity: EntityId, token: broker::LockToken, outcome: Outcome) -> bool {
    let said = turn(
        world,
        Command::Settle {
            request: Some(request(3)),
            subqueue: place(entity),
            session: None,
            token,
            outcome,
        },
    );
    let is_done = |output: &Output| matches!(output, Output::Settled { result: Ok(()), .. });
    said.iter().any(is_done)
}

#[test]
fn a_lock_runs_out_in_one_namespace_and_holds_in_the_other() {
    let mut pair = Pair::new(&QueueSettings::default());
    pair.both(|world, queue, _| send(world, queue, |_| {}));
    let tokens = pair.both(receive).map(Option::unwrap);
    pair.advance(DAY);
    let Pair { world, queues, .. } = &mut pair;
    let settled = [0, 1].map(|i| settle(world, queues[i], tokens[i], Outcome::Complete));
    assert_eq!(settled, [false, true]);
}

#[test]
fn a_time_to_live_ends_and_a_schedule_is_reached_in_one_namespace_alone() {
    let mut pair = Pair::new(&QueueSettings::default());
    let due = Wall(pair.world.now().wall.0 + DAY);
    pair.both(|world, queue, _| {
        send(world, queue, |message| message.ttl_ms = Some(60 * SECOND));
        send(world, queue, |message| message.scheduled = Some(due));
    });
    assert_eq!(pair.active(), [1, 1]);
    pair.advance(DAY - 1);
    assert_eq!(pair.active(), [0, 1]);
    pair.advance(1);
    assert_eq!(pair.active(), [1, 1]);
    // The neighbour's own time passes with the broker's.
    while pair.world.step_to(DAY) {
        turn(&mut pair.world, Command::Tick);
    }
    turn(&mut pair.world, Command::Tick);
    assert_eq!(pair.active(), [1, 1]);
    let scheduled = pair
        .queues
        .map(|id| pair.world.shard.broker.queue(id).unwrap().scheduled);
    assert_eq!(scheduled, [0, 0]);
}

#[test]
fn a_duplicate_is_none_after_the_window_and_an_unused_queue_goes() {
    let settings = QueueSettings {
        requires_duplicate_detection: true,
        ..QueueSettings::default()
    };
    let mut pair = Pair::new(&settings);
    pair.both(|world, queue, _| send(world, queue, |_| {}));
    pair.advance(DAY);
    pair.both(|world, queue, _| send(world, queue, |_| {}));
    assert_eq!(pair.active(), [2, 1]);

    let settings = QueueSettings {
        auto_delete_on_idle: 600 * SECOND,
        ..QueueSettings::default()
    };
    let mut pair = Pair::new(&settings);
    pair.advance(DAY);
    let broker = &pair.world.shard.broker;
    let there = pair.queues.map(|id| broker.queue(id).is_some());
    assert_eq!(there, [false, true]);
}

#[test]
fn a_retry_comes_in_one_namespace_alone() {
    let mut pair = Pair::new(&QueueSettings::default());
    pair.both(|world, queue, _| send(world, queue, |_| {}));
    let tokens = pair.both(receive).map(Option::unwrap);
    let Pair { world, queues, .. } = &mut pair;
    for (queue, token) in queues.iter().zip(tokens) {
        let outcome = Outcome::Abandon {
            changes: Vec::new(),
            retry: RetryTime::After(DAY),
        };
        assert!(settle(world, *queue, token, outcome));
    }
    assert_eq!(pair.active(), [0, 0]);
    pair.advance(DAY);
    assert_eq!(pair.active(), [1, 0]);
}

#[test]
fn a_transaction_times_out_in_one_namespace_alone() {
    let mut pair = Pair::new(&QueueSettings::default());
    let transactions = pair.both(|world, entity, connection| {
        let request = broker::RequestId {
            connection: ConnectionId(connection),
            token: 1,
        };
        let coordinator = 0;
        let said = turn(
            world,
            Command::Declare {
                request,
                namespace: world.shard.broker.queue(entity).unwrap().namespace,
                coordinator,
            },
        );
        let [Output::Declared { result, .. }] = &said[..] else {
            panic!("{said:?}");
        };
        let transaction: TransactionId = result.clone().unwrap();
        let messages = vec![Incoming::default()];
        turn(
            world,
            Command::Enlist {
                request,
                transaction,
                operation: Box::new(Operation::Send { entity, messages }),
                scope: None,
                refusal: RefusalReport::Reported,
            },
        );
        (request, transaction)
    });
    pair.advance(DAY);
    let committed = transactions.map(|(request, transaction)| {
        let fail = false;
        let said = turn(
            &mut pair.world,
            Command::Discharge {
                request,
                transaction,
                fail,
            },
        );
        let is_done = |it: &Output| matches!(it, Output::Discharged { result: Ok(()), .. });
        said.iter().any(is_done)
    });
    assert_eq!(committed, [false, true]);
}

#[test]
fn a_fault_rule_is_in_force_and_a_delay_ends_by_the_clock_of_its_namespace() {
    let mut pair = Pair::new(&QueueSettings::default());
    let start = pair.world.now().wall.0;
    let busy = FaultEffect::Refuse(InjectedError::ServerBusy);
    let rule = |name: &str, from: u64, effect| FaultRule {
        name: name.to_owned(),
        matches: FaultMatch {
            from: Some(start + from),
            until: Some(start + from + DAY),
            ..FaultMatch::default()
        },
        effect,
    };
    for name in ["left", "right"] {
        let rules = vec![
            rule("later", DAY, busy),
            rule("now", 0, FaultEffect::DelayMs(HOUR)),
        ];
        let name = name.to_owned();
        let replace = NamespaceOrder::ReplaceFaults { name, rules };
        order(&mut pair.world, DEFAULT, Order::Namespaces(replace));
    }
    pair.both(|world, queue, _| send(world, queue, |_| {}));
    assert_eq!(pair.active(), [0, 0], "both are delayed");
    pair.advance(HOUR - 1);
    assert_eq!(pair.active(), [0, 0]);
    pair.advance(1);
    assert_eq!(pair.active(), [1, 0]);
    pair.advance(DAY);
    let refused = pair.both(|world, queue, _| {
        let said = send(world, queue, |_| {});
        let is_refused = |it: &Output| matches!(it, Output::Sent { result: Err(_), .. });
        said.iter().any(is_refused)
    });
    assert_eq!(refused, [true, false]);
}

#[test]
fn delays_of_one_namespace_leave_room_for_those_of_another() {
    const MOST: u64 = 10_000;
    let mut pair = Pair::new(&QueueSettings::default());
    for name in ["left", "right"] {
        let rules = vec![FaultRule {
            name: "slow".to_owned(),
            matches: FaultMatch::default(),
            effect: FaultEffect::DelayMs(HOUR),
        }];
        let name = name.to_owned();
        let replace = NamespaceOrder::ReplaceFaults { name, rules };
        order(&mut pair.world, DEFAULT, Order::Namespaces(replace));
    }
    let [left, right] = pair.queues;
    for _ in 0..MOST {
        send(&mut pair.world, left, |_| {});
    }
    assert_eq!(pair.active(), [0, 0]);
    // There is no room for one more, and the rule has left it alone.
    send(&mut pair.world, left, |_| {});
    send(&mut pair.world, right, |_| {});
    assert_eq!(pair.active(), [1, 0]);
    let list = NamespaceOrder::ListFaults("left".to_owned());
    let listed = order(&mut pair.world, DEFAULT, Order::Namespaces(list));
    let Answer::Namespaces(NamespaceAnswer::Faults(faults)) = listed else {
        panic!("{listed:?}");
    };
    assert_eq!(faults[0].injected, MOST);
    pair.advance(HOUR);
    while pair.active()[0] <= MOST {
        turn(&mut pair.world, Command::Tick);
    }
    assert_eq!(pair.active(), [MOST + 1, 0]);
    // There is room again.
    send(&mut pair.world, left, |_| {});
    assert_eq!(pair.active(), [MOST + 1, 0]);
}

#[test]
fn a_fork_has_the_time_of_its_origin_and_a_restart_the_brokers() {
    let mut pair = Pair::new(&QueueSettings::default());
    pair.advance(DAY);
    let fork = NamespaceOrder::Fork {
        name: "left".to_owned(),
        snapshot: None,
        definition: Box::new(NamespaceDefinition {
            name: "fork".to_owned(),
            ..NamespaceDefinition::default()
        }),
    };
    let id = match order(&mut pair.world, DEFAULT, Order::Namespaces(fork)) {
        Answer::Namespaces(NamespaceAnswer::One(description)) => description.id,
        other => panic!("{other:?}"),
    };
    let ahead = |pair: &Pair| [pair.left, id].map(|id| pair.world.shard.broker.ahead(id));
    assert_eq!(ahead(&pair), [Some(DAY), Some(DAY)]);
    let delete = NamespaceOrder::Remove("left".to_owned());
    order(&mut pair.world, DEFAULT, Order::Namespaces(delete));
    assert_eq!(ahead(&pair), [None, Some(DAY)]);
    advance(&mut pair.world, pair.left, DAY);
    assert_eq!(ahead(&pair), [None, Some(DAY)], "no clock of what is gone");
    pair.world.restart();
    assert_eq!(ahead(&pair), [None, Some(0)]);
}

#[test]
fn what_a_reset_and_a_restore_make_goes_by_the_clock_of_its_namespace() {
    let settings = QueueSettings {
        auto_delete_on_idle: HOUR,
        ..QueueSettings::default()
    };
    let mut pair = Pair::new(&settings);
    pair.advance(HOUR / 2);
    let (name, snapshot) = ("left".to_owned(), "s".to_owned());
    let take = NamespaceOrder::TakeSnapshot { name, snapshot };
    order(&mut pair.world, DEFAULT, Order::Namespaces(take));
    pair.advance(DAY);
    let queues = |pair: &Pair| {
        let all = pair.world.shard.broker.queues();
        all.filter(|queue| queue.namespace == pair.left).count()
    };
    assert_eq!(queues(&pair), 0, "it was idle for too long");
    let (name, snapshot) = ("left".to_owned(), "s".to_owned());
    let restore = NamespaceOrder::Restore { name, snapshot };
    order(&mut pair.world, DEFAULT, Order::Namespaces(restore));
    pair.advance(HOUR / 4);
    assert_eq!(queues(&pair), 1, "its time began with the restore");
    pair.advance(HOUR);
    assert_eq!(queues(&pair), 0);
}
