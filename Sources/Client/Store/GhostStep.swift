package import ThicketProtocol
import ThicketSealed

/// The step of a ghost by one change. Reading a store applies the diff, whose meaning is the same in every version of
/// this program; merging, whose rules may change, is never part of reading a store.
package struct GhostStep: Sendable, Equatable {
    /// The version that the change created.
    package let version: Version
    /// The change's effect on the ghost.
    package let diff: ObjectDiff

    package init(version: Version, diff: ObjectDiff) {
        self.version = version
        self.diff = diff
    }
}

extension Ghost {
    /// The ghost after `steps`, in order.
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
    /// The edits with `steps` appended in order, composed exactly as when they were made.
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
