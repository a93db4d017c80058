package import ThicketProtocol
import ThicketSealed

/// A ghost moved on by one change. Read again by applying the diff, which means the same in every version of this
/// program: merging, whose rules may grow, is never part of reading a store.
package struct GhostStep: Sendable, Equatable {
    /// The version that the change made.
    package let version: Version
    /// What it did to the ghost.
    package let diff: ObjectDiff

    package init(version: Version, diff: ObjectDiff) {
        self.version = version
        self.diff = diff
    }
}

extension Ghost {
    /// The ghost moved on by `steps`, in order.
    package func after(_ steps: [GhostStep]) throws(DiffError) -> Ghost {
        var moved = self
        for step in steps {
            moved.object = try JSONDiff.apply(step.diff, to: moved.object ?? JSONObject())
            moved.version = step.version
        }
        return moved
    }
}

extension EditState {
    /// The edits with `steps` behind everything else: one after the other, exactly as they were added when they were
    /// made.
    package func after(_ steps: [ObjectDiff]) throws(DiffError) -> EditState {
        var grown = self
        for step in steps {
            if grown.sealed.later != nil {
                try grown.sealed.add(step)
                continue
            }
            switch grown.later {
            case nil: grown.later = .modify(step)
            case .modify(let diff): grown.later = .modify(try JSONDiff.compose(diff, step))
            case .remove: throw DiffError(.missingKey)
            }
        }
        return grown
    }
}
