import ThicketCommandLine

/// How many objects, or files, a mirror may remove at once without permission: an emptied folder or an emptied bucket
/// must not delete the other side (docs/decisions/0085).
struct RemovalLimit: Sendable, Equatable {
    /// The permitted number. `few` is the default: `stops` then permits what is not many.
    enum Allowed: Sendable, Equatable {
        case few
        case upTo(Int)
        case all
    }

    /// Up to this number, removals never count as many.
    static let fewMax = 20

    var allowed = Allowed.few

    init() {}

    /// - Parameter text: the value of `--allow-removals`; nil when it was not given.
    /// - Throws: `usage`.
    init(_ text: String?) throws(Failure) {
        guard let text else { return }
        if same(text, "all") {
            allowed = .all
        } else if let count = Int(text), count >= 0 {
            allowed = .upTo(count)
        } else {
            throw Failure("--allow-removals is a number or 'all', not '\(text)'", .usage)
        }
    }

    /// - Parameters:
    ///   - count: how many would be removed.
    ///   - total: how many are mirrored.
    ///   - isEmptied: the other side is empty though the mirror's memory is not.
    func stops(_ count: Int, of total: Int, isEmptied: Bool = false) -> Bool {
        guard count > 0 else { return false }
        switch allowed {
        case .all: return false
        case .upTo(let most) where count <= most: return false
        case .few, .upTo: return (count > Self.fewMax && 2 * count > total) || (isEmptied && total > 1)
        }
    }
}
