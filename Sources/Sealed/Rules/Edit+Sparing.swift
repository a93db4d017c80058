import ThicketProtocol

extension Edit {
    /// What is left of an edit after `sparing`.
    struct Rest {
        /// nil: nothing.
        var edit: Edit?
        /// Some of the edit is gone.
        var isLess: Bool
    }

    /// This edit of `value` without what it does to values that are already as `wanted` has them. For a device's own
    /// edits before they are sealed (docs/decisions/0086); operations in a log are never read by it.
    func sparing(of value: JSONValue?, wanted: JSONValue?) -> Rest {
        if value == wanted { return Rest(edit: nil, isLess: true) }
        guard case .members(let members) = self, case .object(let object)? = value, case .object(let target)? = wanted
        else { return Rest(edit: self, isLess: false) }
        var kept = [Member]()
        var isLess = false
        for member in members {
            let rest = member.edit.sparing(of: object[member.key], wanted: target[member.key])
            isLess = isLess || rest.isLess
            if let edit = rest.edit { kept.append(Member(member.key, edit)) }
        }
        return Rest(edit: kept.isEmpty ? nil : .members(kept), isLess: isLess)
    }
}
