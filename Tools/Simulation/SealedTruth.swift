import ThicketProtocol
import ThicketSealed
import ThicketServer

/// A sealed object as a reader knows it that has the keys and reads every operation since the creation, and only the
/// snapshot of the creation.
struct SealedTruth {
    private(set) var log: SealedLog
    /// The object before the newest operation.
    private(set) var before: JSONObject?
    /// Earlier incarnations.
    private var past = [[UInt8]]()
    /// After a restore of the server a client continued from operations that the backup did not contain: every device
    /// stops at that point, until one keeps its own state.
    private(set) var isForked = false

    /// What apps see; nil: it is deleted, or used by the devices only.
    var object: JSONObject? { log.appKey.utf8.elementsEqual(SealedHeads.appKey.utf8) ? nil : log.object }

    /// What a row of the log does to the object.
    enum Step {
        case creation, operation([UInt8]), compaction
    }

    /// A newly created object as the server holds it now.
    /// - Throws: `Flaw`.
    init(_ entity: SealedEntity, after truth: SealedTruth?, _ place: SealedPlace, _ sealer: ObjectSealer) throws(Flaw) {
        log = try Self.opened(entity, place, sealer)
        guard entity.tail.isEmpty, log.position == 0 else {
            throw Flaw("a creation begins at position \(log.position)")
        }
        past = truth.map { $0.past + [$0.log.incarnation] } ?? []
        guard !past.contains(log.incarnation) else { throw Flaw("an incarnation comes again") }
    }

    /// A violation, in words.
    struct Flaw: Error {
        let text: String
        init(_ text: String) { self.text = text }
    }

    /// Replays the row that made the server's object `entity`.
    mutating func replay(
        _ step: Step, _ entity: SealedEntity, _ sealer: ObjectSealer, isRestored: Bool
    ) throws(Flaw) {
        guard !isForked else { return }
        if case .operation(let sealed) = step { try replay(sealed, sealer, isRestored: isRestored) }
        guard !isForked else { return }
        guard entity.position == log.position else {
            throw Flaw("the server is at \(entity.position), the operations at \(log.position)")
        }
        guard case .compaction = step else { return }
        guard try Self.opened(entity, log.place, sealer) == log else {
            throw Flaw("the snapshot of \(entity.newest?.position ?? 0) is not what the operations give")
        }
    }

    private mutating func replay(_ sealed: [UInt8], _ sealer: ObjectSealer, isRestored: Bool) throws(Flaw) {
        before = log.object
        let verdict = log.append(
            sealed, clear: sealer.open(sealed, kind: .operation, position: 0)?.clear)
        switch verdict {
        case .applied: break
        case .void(let reason) where !reason.isSuspicious: break
        case .forked where isRestored: isForked = true
        case .void, .misfit, .unknownRules, .forked: throw Flaw("operation \(log.position) is \(verdict)")
        }
    }

    /// Everything that a device without a local copy reads.
    private static func opened(
        _ entity: SealedEntity, _ place: SealedPlace, _ sealer: ObjectSealer
    ) throws(Flaw) -> SealedLog {
        let opened: (object: SealedObject, events: [SealedEvent])
        do throws(SealedOpenError) {
            opened = try SealedObject.open(entity, author: AuthorID(rawValue: 0), place: place, with: sealer)
        } catch {
            throw Flaw("it does not open: \(error.integrity)")
        }
        guard opened.object.problem == nil, !opened.object.isStopped else {
            throw Flaw("a new device is told \(opened.events)")
        }
        return opened.object.log
    }
}

extension Ledger.Mirror {
    /// Reads a row of a sealed bucket with the keys.
    ///
    /// - Parameters:
    ///   - diff: nil for a removal.
    ///   - object: the server's object after the row.
    /// - Returns: the violation; nil: none.
    mutating func replaySealed(
        _ row: ChangeRecord, _ diff: ObjectDiff?, _ object: JSONObject?, _ keys: SealedBucketKeys, _ world: World
    ) -> String? {
        do throws(SealedShapeError) { try SealedShape.check(key: row.key.text) } catch {
            return "the key \(row.key.text) of a sealed bucket is not sealed"
        }
        let known = sealed.removeValue(forKey: row.key)
        guard let diff, let object else {
            sealed[row.key] = known
            guard let left = known?.log.object else { return nil }
            guard world.replaced.contains(row.key) else {
                return "a removal of \(row.key.text) without its tombstone"
            }
            // A user keeps the local state and has seen the server's.
            world.giveUp(left)
            return nil
        }
        do {
            let entity = try SealedShape.check(object: object)
            let sealer = try keys.sealer(serverKey: row.key.text)
            let place = keys.place(serverKey: row.key.text)
            var truth: SealedTruth
            if row.sourceVersion == nil {
                truth = try SealedTruth(entity, after: known, place, sealer)
            } else {
                guard let known else { return "an operation on \(row.key.text), which no client has made" }
                truth = known
                let step = Self.step(diff)
                try truth.replay(step, entity, sealer, isRestored: world.isRestored)
                if case .compaction = step { world.tally.compactions += 1 } else { world.tally.operations += 1 }
            }
            sealed[row.key] = truth
            return nil
        } catch let flaw as SealedTruth.Flaw {
            return "\(known?.log.appKey ?? row.key.text): \(flaw.text)"
        } catch {
            return "\(row.key.text) of a sealed bucket is not sealed: \(error)"
        }
    }

    private static func step(_ diff: ObjectDiff) -> SealedTruth.Step {
        guard diff.operations.count == 1, case .list(let list)? = diff["d"], list.operations.count == 1,
            case .insert(.string(let text)) = list.operations[0].operation
        else { return .compaction }
        return .operation(SealedObject.bytes(of: text))
    }

    /// The objects of the bucket as apps see them, by the apps' keys.
    var objects: [EntityKey: JSONObject] {
        guard isSealed else { return entities.compactMapValues(\.object) }
        var objects = [EntityKey: JSONObject]()
        for (wire, truth) in sealed where entities[wire]?.object != nil {
            guard let object = truth.object, let key = try? EntityKey(truth.log.appKey) else {
                continue
            }
            objects[key] = object
        }
        return objects
    }
}
