import ThicketProtocol
import ThicketTreeShape

/// Why a change of a tree is refused: what the author receives beside the code.
public struct TreeRejection: Hashable, Sendable {
    /// The word in the answer; a label of `thicket_tree_refused_total`.
    public let reason: RefusalReason
    /// The current version, for a change that was made on another one.
    public let current: Version?

    /// The word as it is sent.
    var word: String { reason.rawValue }
}

extension ChangeRejection {
    init(_ refusal: TreeRefusal) {
        let current: Version? = if case .stale(let current) = refusal { current } else { nil }
        self.init(
            refusal.reason.code, refusal.description, tree: TreeRejection(reason: refusal.reason, current: current))
    }

    init(_ fault: RecordFault) {
        self.init(fault.reason.code, fault.description, tree: TreeRejection(reason: fault.reason, current: nil))
    }
}
