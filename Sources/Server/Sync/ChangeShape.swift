import ThicketProtocol
import ThicketSealedShape

/// What could be checked of a change without its object, by the bucket's mode.
enum ChangeShape: Sendable {
    case open
    case sealed(SealedShape.Change)
    case tree(TreeChange)

    init(_ submitted: SubmittedChange, _ change: CheckedChange, in mode: BucketMode) throws(ChangeRejection) {
        switch mode {
        case .open: self = .open
        case .sealed: self = .sealed(try SealedEngine.shape(of: submitted, change))
        case .tree: self = .tree(try TreeChange(change))
        }
    }

    /// Changes of the other modes are always short, and another thread knows only how to decide those of open buckets.
    var mayTakeLong: Bool { if case .open = self { true } else { false } }
}
