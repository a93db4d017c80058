package import ThicketProtocol
package import ThicketTree
package import ThicketTreeShape

/// A place for one node: a parent and a name. Two places are the same if the folded names are.
package struct Place: Sendable, Hashable {
    package let parent: NodeParent
    package let name: NodeName
    package let folded: [UInt8]

    package init(_ parent: NodeParent, _ name: NodeName) {
        (self.parent, self.name, folded) = (parent, name, name.folded)
    }

    package static func == (left: Place, right: Place) -> Bool {
        left.parent == right.parent && left.folded == right.folded
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(parent)
        hasher.combine(folded)
    }
}

/// What an operation writes.
package struct WriteFields: OptionSet, Sendable, Hashable {
    package let rawValue: Int64
    package init(rawValue: Int64) { self.rawValue = rawValue }

    /// The node is new.
    package static let creation = WriteFields(rawValue: 1)
    /// The parent or the name.
    package static let place = WriteFields(rawValue: 2)
    package static let content = WriteFields(rawValue: 4)
    package static let tags = WriteFields(rawValue: 8)
    package static let burnTime = WriteFields(rawValue: 16)
    /// The list of a shared branch (`TreeStore.shareChange`).
    package static let sharing = WriteFields(rawValue: 32)
    /// Another key, and the same content under another one: what users see of the node stays (`Rekeying`).
    package static let rekey = WriteFields(rawValue: 64)
}

/// A local change that the server has not confirmed. Its content is in the store, not in memory.
package struct PendingOperation: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case write(WriteFields)
        /// Removes the node and everything below it.
        case delete
        /// Sends the node, and what is below it, to the inbox of another account. Operations of one node in one group
        /// are one message, with one statement.
        case copy(UserID, ConversationID)
        /// Removes the node from the inbox of another account.
        case burn(UserID)
    }

    /// Progress of the content that a write sends.
    package enum Content: Int64, Sendable, Hashable {
        /// The operation writes no content.
        case none
        /// The app is asked when the operation is otherwise ready.
        case ask
        /// The content is in a file of the app, whose path is in the operation's row.
        case source
        /// The content is in the operation's row: it fits into the record.
        case held
        /// The content is in a spool file and is being uploaded.
        case spooled
        /// The blob is complete at the server.
        case uploaded

        var isReady: Bool { self == .none || self == .held || self == .uploaded }
    }

    package enum State: Sendable, Hashable {
        /// Waits for its dependencies, its content or its turn.
        case waiting
        /// Is in the request that is in flight, or was when the program ended.
        case sending
        /// Waits for the app.
        case held(Hold)
        /// The server refuses it; it waits for the app.
        case failed(String)
    }

    package enum Hold: Int64, Sendable, Hashable {
        /// Another device changed the content too.
        case data = 1
        /// Another device removed the node.
        case removed
        /// The app could not provide the content.
        case content
        /// There are no keys of the receiver that may be used.
        case keys
    }

    package let id: OperationID
    package let node: NodeID
    package var kind: Kind
    /// The place that the operation frees: of moves and deletions.
    package var origin: Place?
    /// The place that the operation occupies: of creations and moves.
    package var target: Place?
    /// Operations of one group are sent in one request.
    package var group: Int64?
    /// Earlier operations that must be confirmed first, or be sent before in the same request.
    package var dependencies: Set<OperationID> = []
    /// Higher ones are sent first, as far as dependencies allow.
    package var priority: Int64 = 0
    package var content = Content.none
    package var state = State.waiting
    /// Why the last attempt to send it was not accepted, for people; nil while nothing is known to be wrong. Kept while
    /// the operation waits or is being sent, so that a later run of the program knows it.
    package var trouble: String?
    /// Equal refusals in a row.
    package var attempts: Int64 = 0
    /// The server has this version of the node: the operation waits until this device has it too.
    package var waitsFor: Version?
    /// Each version is sent: later writes are not merged into this one.
    package var isKept = false

    package init(_ id: OperationID, _ node: NodeID, _ kind: Kind) { (self.id, self.node, self.kind) = (id, node, kind) }

    package var fields: WriteFields {
        if case .write(let fields) = kind { return fields }
        return []
    }
    package var isCreation: Bool { fields.contains(.creation) }
    package var isDelete: Bool { kind == .delete }
    package var isWrite: Bool { if case .write = kind { true } else { false } }
    package var isCopy: Bool { if case .copy = kind { true } else { false } }
    package var isBurn: Bool { if case .burn = kind { true } else { false } }
    package var isSending: Bool { state == .sending }

    /// The account to whose tree the operation belongs; nil: this one's.
    package var receiver: UserID? {
        switch kind {
        case .write, .delete: nil
        case .copy(let user, _), .burn(let user): user
        }
    }

    package var conversation: ConversationID? { if case .copy(_, let id) = kind { id } else { nil } }
    /// The places that the operation touches.
    var places: [Place] { [origin, target].compactMap { $0 } }
}

extension PendingOperation.Kind {
    /// The number in the store.
    var number: Int64 {
        switch self {
        case .write: 0
        case .delete: 1
        case .copy: 2
        case .burn: 3
        }
    }

    /// - Returns: nil for what no operation is.
    init?(number: Int64, _ fields: WriteFields, _ receiver: UserID?, _ conversation: ConversationID?) {
        switch (number, receiver, conversation) {
        case (2, let receiver?, let conversation?): self = .copy(receiver, conversation)
        case (3, let receiver?, _): self = .burn(receiver)
        case (2, _, _), (3, _, _): return nil
        case (0, _, _): self = .write(fields)
        default: self = .delete
        }
    }
}
