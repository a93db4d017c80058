/// The faults of a run while the world is not calm. `docs/SIMULATION.md` describes each.
public enum Fault: Int, CaseIterable, Sendable {
    /// The server is killed between two events and starts again after 50 ms to 10 s.
    case serverKill
    /// The store refuses a commit group.
    case commitRefused
    /// The server dies inside a commit.
    case commitCrash
    /// A read takes seconds.
    case slowRead
    /// A client stops reading for 5 to 60 s.
    case slowReader
    /// A client's program is killed.
    case clientKill
    /// A client's store refuses a transaction.
    case clientStore
    /// A connection breaks with messages in flight.
    case cut
    /// The first packet of a connection is lost.
    case lostDial
    /// No messages pass between a client and the server for 1 to 50 s.
    case partition
    /// A change arrives twice at the server.
    case doubledRequest
    /// An answer to a change arrives twice at the client.
    case doubledAnswer
    /// The server ends and continues from an earlier backup; only on disks.
    case serverRestore
    /// An older program of the user writes clear text into a sealed bucket; the server must refuse it.
    case clearWrite
    /// A request by HTTP, or its answer, is lost.
    case lostCall
    /// A request by HTTP arrives twice at the server.
    case doubledCall

    /// The name in the catalogue and in `--with`.
    public var name: String { "\(self)" }

    /// The description for a person: the text of the catalogue.
    public var summary: String {
        switch self {
        case .serverKill: "the server is killed between two events and starts again after 50 ms to 10 s"
        case .commitRefused:
            "the store refuses a group: an I/O error, a full disk, a row it does not take; on a disk one call fails"
        case .commitCrash:
            "the server dies inside a commit: nothing of the group is kept, or all of it and no client is notified; "
                + "on a disk at any write or sync, also of background work and of a start"
        case .slowRead: "a read takes seconds, its answer meets a later state of the hub"
        case .slowReader: "a client stops reading for 5 to 60 s; over its bound the server drops it with 1013"
        case .clientKill:
            "a client's program is killed between two turns, or between what a turn keeps and what it sends; "
                + "on a disk at any write or sync"
        case .clientStore: "a client's store refuses a transaction"
        case .cut: "a connection breaks: part of what is in flight arrives, each side notices at a different time"
        case .lostDial: "the first packet of a connection is lost for good"
        case .partition: "nothing passes between a client and the server for 1 to 50 s, then everything at once"
        case .doubledRequest: "a change arrives twice at the server"
        case .doubledAnswer: "an answer to a change arrives twice at the client"
        case .serverRestore: "the server ends and goes on from a backup that it made some time before; only on disks"
        case .clearWrite:
            "an older program of the same user writes clear text into a sealed bucket; the server has to refuse it"
        case .lostCall: "a request by HTTP is lost, or its answer; only with trees"
        case .doubledCall: "a request by HTTP arrives twice at the server, at different times; only with trees"
        }
    }
}

/// The rate of each fault, in 1,000 opportunities.
struct FaultRates: Sendable {
    private var rates = Array(repeating: 0, count: Fault.allCases.count)

    subscript(fault: Fault) -> Int {
        get { rates[fault.rawValue] }
        set { rates[fault.rawValue] = newValue }
    }
}

/// How often each fault happened.
struct FaultCounts: Sendable, Equatable {
    private var counts = Array(repeating: 0, count: Fault.allCases.count)

    subscript(fault: Fault) -> Int {
        get { counts[fault.rawValue] }
        set { counts[fault.rawValue] = newValue }
    }

    mutating func add(_ other: FaultCounts) {
        for fault in Fault.allCases { self[fault] += other[fault] }
    }

    var text: String { Fault.allCases.map { "\($0.name) \(self[$0])" }.joined(separator: ", ") }
}
