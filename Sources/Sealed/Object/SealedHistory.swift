import ThicketProtocol

/// Holds the states of one object that a server has kept against each other, from the oldest on: offline, with nothing
/// but the keys. Each must open, and lead on from the one before.
public struct SealedHistory: Sendable {
    /// What does not fit.
    public struct Finding: Sendable, Equatable {
        /// The server's version of the state in which it shows.
        public let version: Int64
        public let kind: Kind

        public enum Kind: Sendable, Equatable {
            case integrity(SealedIntegrity)
            /// Operations behind this position were written under newer rules, or, with nil, the whole state is of a
            /// newer shape: nothing can be said of them.
            case stopped(after: Int?)
            /// The object calls itself by a name that does not give the key under which it stands.
            case otherName
        }
    }

    private let keys: SealedBucketKeys
    private let place: SealedPlace
    private let sealer: ObjectSealer
    /// What the states so far make of it; nil before the first that opens.
    private var object: SealedObject?
    public private(set) var findings: [Finding] = []
    /// States read.
    public private(set) var states: Int = 0
    /// Times that the object was made anew under its key, as far as the states show it.
    public private(set) var recreations: Int = 0

    /// - Parameter serverKey: the key under which the server has the object.
    /// - Throws: `CryptoError.outOfBounds`, for a key beyond `Limits` only.
    public init(keys: SealedBucketKeys, serverKey: String) throws {
        (self.keys, place, sealer) = (keys, keys.place(serverKey: serverKey), try keys.sealer(serverKey: serverKey))
    }

    /// The log as the last state that opened gives it; nil: none did.
    public var log: SealedLog? { object?.log }

    /// Reads the next state. Give them in the order of their versions.
    public mutating func read(_ state: JSONObject, version: Int64) {
        states += 1
        let entity: SealedEntity
        do throws(SealedShapeError) { entity = try SealedShape.check(object: state) } catch {
            return tell(version, error.kind == .newerShape ? .stopped(after: nil) : .integrity(.clear))
        }
        guard var known = object else { return begin(entity, version) }
        let events = known.adopt(entity, with: sealer)
        object = known
        tell(version, events)
        // What follows is held against this state, so that one thing wrong does not hide the next.
        if known.problem != nil || known.isStopped { begin(entity, version, isTold: true) }
    }

    private mutating func begin(_ entity: SealedEntity, _ version: Int64, isTold: Bool = false) {
        let opened: (object: SealedObject, events: [SealedEvent])
        do throws(SealedOpenError) {
            opened = try SealedObject.open(entity, author: AuthorID(rawValue: 0), place: place, with: sealer)
        } catch {
            object = nil
            if !isTold { tell(version, .integrity(error.integrity)) }
            return
        }
        // A state that is wrong in itself is no ground for the next.
        object = opened.object.problem == nil && !opened.object.isStopped ? opened.object : nil
        if !isTold { tell(version, opened.events) }
        if !keys.serverKey(of: opened.object.log.appKey).utf8.elementsEqual(place.serverKey.utf8) {
            tell(version, .otherName)
        }
    }

    private mutating func tell(_ version: Int64, _ events: [SealedEvent]) {
        for event in events {
            switch event {
            case .integrity(let integrity): tell(version, .integrity(integrity))
            case .stopped(let after): tell(version, .stopped(after: after))
            case .recreated: recreations += 1
            case .changed, .acknowledged, .rebased, .conflict: break
            }
        }
    }

    private mutating func tell(_ version: Int64, _ kind: Finding.Kind) {
        findings.append(Finding(version: version, kind: kind))
    }
}

extension SealedHistory.Finding: CustomStringConvertible {
    /// For users and logs: no content.
    public var description: String {
        switch kind {
        case .integrity(let integrity): "version \(version): \(integrity)"
        case .stopped(nil): "version \(version): of a newer shape, and was not checked"
        case .stopped(let after?):
            "version \(version): operations behind \(after) were written under newer rules, and were not checked"
        case .otherName: "version \(version): the object's own name is another one's"
        }
    }
}
