import ThicketProtocol

/// Compares the states of one object that a server has kept, from the oldest on: offline, with only the keys. Each must
/// open and continue the one before.
public struct SealedHistory: Sendable {
    /// An inconsistency.
    public struct Finding: Sendable, Equatable {
        /// The server's version of the state that shows it.
        public let version: Int64
        /// The kind of inconsistency.
        public let kind: Kind

        /// The kinds of inconsistency.
        public enum Kind: Sendable, Equatable {
            /// The state or its log is inconsistent.
            case integrity(SealedIntegrity)
            /// Operations after this position were written under newer rules, or, with nil, the whole state has a newer
            /// shape: they cannot be checked.
            case stopped(after: Int?)
            /// The name inside the object does not give the key under which it is stored.
            case otherName
        }
    }

    private let keys: SealedBucketKeys
    private let place: SealedPlace
    private let sealer: ObjectSealer
    /// The object as of the last state; nil before the first state that opens.
    private var object: SealedObject?
    /// The inconsistencies, in the order of the states.
    public private(set) var findings: [Finding] = []
    /// Number of states read.
    public private(set) var states = 0
    /// How often the object was created again under its key, as far as the states show it.
    public private(set) var recreations = 0

    /// - Parameter serverKey: the key under which the server has the object.
    /// - Throws: `CryptoError.outOfBounds`, only for a key beyond `Limits`.
    public init(keys: SealedBucketKeys, serverKey: String) throws {
        (self.keys, place, sealer) = (keys, keys.place(serverKey: serverKey), try keys.sealer(serverKey: serverKey))
    }

    /// The log of the last state that opened; nil: none did.
    public var log: SealedLog? { object?.log }

    /// Reads the next state. Pass them in the order of their versions.
    public mutating func read(_ state: JSONObject, version: Int64) {
        states += 1
        let entity: SealedEntity
        do throws(SealedShapeError) { entity = try SealedShape.check(object: state) } catch {
            return record(version, error.kind == .newerShape ? .stopped(after: nil) : .integrity(.clear))
        }
        guard var known = object else { return begin(entity, version) }
        let events = known.adopt(entity, with: sealer)
        object = known
        record(version, events)
        // Later states are compared with this one, so that one error does not hide the next.
        if known.problem != nil || known.isStopped { begin(entity, version, isReported: true) }
    }

    private mutating func begin(_ entity: SealedEntity, _ version: Int64, isReported: Bool = false) {
        let opened: (object: SealedObject, events: [SealedEvent])
        do throws(SealedOpenError) {
            opened = try SealedObject.open(entity, author: AuthorID(rawValue: 0), place: place, with: sealer)
        } catch {
            object = nil
            if !isReported { record(version, .integrity(error.integrity)) }
            return
        }
        // An inconsistent state is not a base for the next.
        object = opened.object.problem == nil && !opened.object.isStopped ? opened.object : nil
        if !isReported { record(version, opened.events) }
        if !keys.serverKey(of: opened.object.log.appKey).utf8.elementsEqual(place.serverKey.utf8) {
            record(version, .otherName)
        }
    }

    private mutating func record(_ version: Int64, _ events: [SealedEvent]) {
        for event in events {
            switch event {
            case .integrity(let integrity): record(version, .integrity(integrity))
            case .stopped(let after): record(version, .stopped(after: after))
            case .recreated: recreations += 1
            case .changed, .acknowledged, .rebased, .conflict: break
            }
        }
    }

    private mutating func record(_ version: Int64, _ kind: Finding.Kind) {
        findings.append(Finding(version: version, kind: kind))
    }
}

extension SealedHistory.Finding: CustomStringConvertible {
    /// For users and logs; contains no user content.
    public var description: String {
        switch kind {
        case .integrity(let integrity): "version \(version): \(integrity)"
        case .stopped(nil): "version \(version): has a newer shape and was not checked"
        case .stopped(let after?):
            "version \(version): operations after \(after) were written under newer rules and were not checked"
        case .otherName: "version \(version): the object's own name belongs to another key"
        }
    }
}
