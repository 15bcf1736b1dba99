//! Load: what is in a file becomes what a namespace has.
//!
//! Pieces of bounded size become a snapshot without a name, which a restart removes. The restore
//! then makes it what the namespace has, in one commit. What was loaded in vain is released.

use std::path::Path;

use broker::{Answer, EntityError, FrozenEntity, NamespaceAnswer, NamespaceOrder, Order, Piece};
use store::EntityId;

use super::codec::Record;
use super::file::{FileError, FileReader};
use super::{Error, PIECE, PIECE_BYTES};
use crate::shard::shard_client::ShardClient;

/// What was loaded and is no namespace's yet.
pub struct Loading(pub EntityId);

impl Loading {
    /// Loads a whole file. It blocks while it reads.
    pub async fn load(shard: &mut ShardClient, path: &Path) -> Result<Self, Error> {
        let mut file = FileReader::open(path)?;
        let (entities, first) = read_entities(&mut file)?;
        let begin = NamespaceOrder::BeginLoad(entities);
        let NamespaceAnswer::Loading(id) = ask(shard, begin).await? else {
            return Err(Error::Unexpected);
        };
        let loading = Self(id);
        match loading.load_pieces(shard, &mut file, first).await {
            Ok(()) => Ok(loading),
            Err(error) => {
                loading.release(shard).await;
                Err(error)
            }
        }
    }

    /// Lets go of what was loaded and will not be a namespace's.
    pub async fn release(self, shard: &mut ShardClient) {
        // If it is not answered, the end of this client's connection lets go of it.
        drop(ask(shard, NamespaceOrder::Release(self.0)).await);
    }

    async fn load_pieces(
        &self,
        shard: &mut ShardClient,
        file: &mut FileReader,
        first: Record,
    ) -> Result<(), Error> {
        let mut gathered = Gathered::default();
        let mut record = first;
        loop {
            let place = place_of(&record)?;
            if place.is_none_or(|place| !gathered.takes(place))
                && let Some(piece) = gathered.take()
            {
                let load = self.0;
                let piece = Box::new(piece);
                ask(shard, NamespaceOrder::Load { load, piece }).await?;
            }
            match (record, place) {
                (Record::Message { message, .. }, Some(place)) => {
                    gathered.add_message(place, *message);
                }
                (Record::Entry { index, entry, .. }, Some(place)) => {
                    gathered.add_entry(place, (index, entry));
                }
                _ => return Ok(()),
            }
            record = file.next()?;
        }
    }
}

/// What the next piece will have.
#[derive(Default)]
struct Gathered {
    piece: Option<Piece>,
    bytes: usize,
}

impl Gathered {
    /// Whether something of an entity fits in.
    fn takes(&self, entity: usize) -> bool {
        self.piece.as_ref().is_none_or(|piece| {
            let count = piece.messages.len() + piece.entries.len();
            piece.entity == entity && count < PIECE && self.bytes < PIECE_BYTES
        })
    }

    fn take(&mut self) -> Option<Piece> {
        self.bytes = 0;
        self.piece.take()
    }

    fn of(&mut self, entity: usize) -> &mut Piece {
        self.piece.get_or_insert_with(|| Piece {
            entity,
            messages: Vec::new(),
            entries: Vec::new(),
        })
    }

    fn add_message(&mut self, entity: usize, message: store::StoredMessage) {
        let parts = [&message.body, &message.patch].into_iter().flatten();
        self.bytes += parts.map(bytes::Bytes::len).sum::<usize>();
        self.of(entity).messages.push(message);
    }

    fn add_entry(&mut self, entity: usize, (index, entry): (store::Index, store::Entry)) {
        self.bytes += entry.size();
        self.of(entity).entries.push((index, entry));
    }
}

/// The entities, and the record after them.
fn read_entities(file: &mut FileReader) -> Result<(Vec<FrozenEntity>, Record), FileError> {
    let mut entities = Vec::new();
    loop {
        match file.next()? {
            Record::Entity(entity) => entities.push(*entity),
            record => return Ok((entities, record)),
        }
    }
}

/// The place of the entity that a record is about; none of the last record.
fn place_of(record: &Record) -> Result<Option<usize>, Error> {
    let place = match record {
        Record::Message { entity, .. } | Record::Entry { entity, .. } => *entity,
        Record::End { .. } => return Ok(None),
        Record::Entity(_) => return Err(wrong("an entity comes after a message")),
    };
    let place = usize::try_from(place);
    place
        .map(Some)
        .map_err(|_| wrong("a message is of no entity"))
}

fn wrong(why: &str) -> Error {
    EntityError::Invalid(format!("the backup cannot be used: {why}")).into()
}

async fn ask(shard: &mut ShardClient, order: NamespaceOrder) -> Result<NamespaceAnswer, Error> {
    match shard.order(Order::Namespaces(order)).await?? {
        Answer::Namespaces(answer) => Ok(answer),
        _ => Err(Error::Unexpected),
    }
}
