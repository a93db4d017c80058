package import ThicketClient
package import ThicketProtocol
package import ThicketTreeShape

/// The state of the socket's channel of the tree.
package struct TreeChannel: Sendable {
    package enum Phase: Sendable, Equatable {
        case closed
        /// `init` was sent.
        case opening
        /// Reads all nodes, page by page.
        case scanning(Scan)
        /// Reads the lists of a lazy skeleton.
        case listing(Scan)
        /// `cv` was sent.
        case catchingUp(CatchUp)
        case live
        /// The server does not open the bucket: tried again at this time.
        case refused(until: Int64, String)
    }

    /// A reading of all nodes.
    package struct Scan: Sendable, Equatable {
        /// Its number; each row that it meets gets it.
        package let id: Int64
        /// The position before its first page.
        package var current: ChangeVersion?
        package var mark: String?
        var marks = CursorCheck()
        package var read: Int64 = 0
        package var total: Int64?
        /// The server's tree is the one to which the rows belong: what is not listed was removed.
        package var isSame = true
    }

    package var phase = Phase.closed
    /// Everything up to this position of the server's log is in the store; nil before the first reading.
    package var position: ChangeVersion?
    /// What of the log arrives again on this connection.
    var repetition = LogRepetition()
    /// The identity of the server's bucket, as reported on this connection.
    package var servedStore: String?
    /// When the oldest unanswered request counts as lost.
    package var answerDue: Int64?
    /// Nodes whose newest version was requested, because a change did not fit, and the version. Also in the store: the
    /// position may have passed the change.
    package var wanted = [NodeID: Version]()
    /// Whether `TreeEvent.caughtUp` was reported on this connection.
    var isReported = false
    /// Turns of the network that failed one after the other.
    package var failures = 0

    /// Failures in a row after which the tree stops to sync (treesystem 3.7).
    package static let failuresMax = 3
    /// Most nodes in `wanted`; with more, all nodes are read again.
    static let wantedMax = 256

    package init() {}

    /// The number of the reading in progress.
    package var scanID: Int64? {
        switch phase {
        case .scanning(let scan), .listing(let scan): scan.id
        case .closed, .opening, .catchingUp, .live, .refused: nil
        }
    }

    /// Whether nodes are read, or may be read as soon as the server has reported its bucket.
    var isReading: Bool { phase == .opening || scanID != nil }

    /// Whether everything up to the position is in the store, in a full skeleton.
    var isWhole: Bool { phase == .live && wanted.isEmpty }

    /// `wanted` as it is stored: ids and versions; nil for none.
    var storedWanted: String? {
        let list = wanted.sorted { $0.key < $1.key }.map { "\($0.key.text).\($0.value)" }
        return list.isEmpty ? nil : list.joined(separator: ",")
    }

    static func wanted(stored: String?) -> [NodeID: Version] {
        var wanted = [NodeID: Version]()
        for entry in stored?.split(separator: ",") ?? [] {
            let parts = entry.split(separator: ".")
            if parts.count == 2, let id = NodeID(text: String(parts[0])), let version = Version(parts[1]) {
                wanted[id] = version
            }
        }
        return wanted
    }

    /// The connection has ended; the position stays.
    package mutating func disconnected() {
        (phase, servedStore, answerDue) = (.closed, nil, nil)
        (repetition, isReported) = (LogRepetition(), false)
    }
}
