import ThicketProtocol

/// The state in which a file and its object were last equal; more exactly, the file's content when the bucket last
/// contained all of it. Every decision compares both sides with this state.
struct MirrorBase: Sendable, Equatable {
    let file: FileName
    /// The file's bytes.
    let bytes: [UInt8]
    /// The same content as an object.
    let object: JSONObject
}

/// One step for one key. After it, the key is compared again, until no step is left: a merge is a `push` now and a
/// `write` in the next round, and a stop between the two does no harm.
enum MirrorStep: Sendable, Equatable {
    case nothing
    /// File and object agree: remember this state (nil: neither exists).
    case remember(MirrorBase?)
    /// Change the object by `diff` if it is still `object` (nil: absent), then remember.
    case push(diff: ObjectDiff, to: JSONObject?, MirrorBase, MirrorRemark?)
    /// Remove the object if it is still this one, then remember that neither exists.
    case remove(JSONObject)
    /// Write the file if it still holds `expecting` (nil: no file), then remember.
    case write(expecting: [UInt8]?, MirrorBase, MirrorRemark?)
    /// Delete the file if it still holds this, then remember that neither exists.
    case delete(FileName, expecting: [UInt8])
    /// Rename the file: it and the object have nothing in common.
    case setAside(FileName)
    /// Change neither: the file of this name, or the object of this key where it has no file name.
    case hold(String, reason: String)
}

/// What is reported to the user.
enum MirrorRemark: Sendable, Equatable {
    /// Both sides changed it and both changes are merged; at these paths the file's value won.
    case merged(overridden: [String])
    /// Deleted in the folder, changed in the bucket: it stays.
    case restoredFile
    /// Changed in the folder, removed from the bucket: it stays.
    case restoredObject
    /// Unchanged in the folder, and absent from a bucket that may not be the one that had it.
    case sentAgain
}

/// What the folder has under a key.
enum MirrorFile: Sendable, Equatable {
    case absent
    case present(FileName, [UInt8])
    /// It exists and cannot be read.
    case unreadable(FileName, reason: String)
}

extension MirrorStep {
    /// Decides the step for one key. Pure: the same three states give the same step.
    ///
    /// - Parameters:
    ///   - base: nil when the key was never on both sides, or is on neither.
    ///   - key: the object's key; the name of a new file is derived from it.
    ///   - isRemoved: an absent object is known to be removed (`ObjectLook.isRemoved`).
    ///   - isDoubtful: the base may be a state that the bucket never had (`MirrorState.isDoubtful`).
    init(
        key: String, base: MirrorBase?, file: MirrorFile, object: JSONObject?, isRemoved: Bool = true,
        isDoubtful: Bool = false
    ) {
        switch (file, base) {
        case (.unreadable(let name, let reason), _): self = .hold(name.name, reason: reason)
        case (.absent, nil): self = MirrorStep.appeared(key, object)
        case (.absent, let base?): self = MirrorStep.fileGone(key, base, object)
        case (.present(let name, let bytes), nil): self = MirrorStep.fileAppeared(name, bytes, object)
        case (.present(let name, let bytes), let base?):
            if bytes == base.bytes, name == base.file {
                self =
                    isDoubtful || (object == nil && !isRemoved)
                    ? MirrorStep.fileStays(base, object) : MirrorStep.fileUnchanged(base, object)
            } else {
                self = MirrorStep.fileChanged(name, bytes, base, object, isDoubtful: isDoubtful)
            }
        }
    }

    private static func appeared(_ key: String, _ object: JSONObject?) -> MirrorStep {
        guard let object else { return .nothing }
        guard let base = MirrorBase(key: key, object: object) else {
            return .hold(key, reason: FileName.Problem.keyTooLong.text)
        }
        return .write(expecting: nil, base, nil)
    }

    private static func fileGone(_ key: String, _ base: MirrorBase, _ object: JSONObject?) -> MirrorStep {
        guard let object else { return .remember(nil) }
        if object == base.object { return .remove(object) }
        guard let next = MirrorBase(key: key, object: object) else { return .remember(nil) }
        return .write(expecting: nil, next, .restoredFile)
    }

    private static func fileAppeared(_ name: FileName, _ bytes: [UInt8], _ object: JSONObject?) -> MirrorStep {
        do throws(FileContent.Problem) {
            let mine = try FileContent.object(bytes, kind: name.kind, existing: object)
            let base = MirrorBase(file: name, bytes: bytes, object: mine)
            guard let object else { return push(from: nil, to: mine, base, nil) }
            return mine == object ? .remember(base) : .setAside(name)
        } catch {
            return .hold(name.name, reason: error.text)
        }
    }

    private static func fileUnchanged(_ base: MirrorBase, _ object: JSONObject?) -> MirrorStep {
        guard let object else { return .delete(base.file, expecting: base.bytes) }
        guard object != base.object else { return .nothing }
        guard let bytes = FileContent.bytes(object, kind: base.file.kind) else {
            // The object is not a text any more: a file of another kind replaces this one.
            return .delete(base.file, expecting: base.bytes)
        }
        let next = MirrorBase(file: base.file, bytes: bytes, object: object)
        return bytes == base.bytes ? .remember(next) : .write(expecting: base.bytes, next, nil)
    }

    /// The file is unchanged, and nothing proves that the bucket developed from the base: an absent object is sent
    /// again, and a different one is kept beside the file.
    private static func fileStays(_ base: MirrorBase, _ object: JSONObject?) -> MirrorStep {
        guard let object else { return push(from: nil, to: base.object, base, .sentAgain) }
        return object == base.object ? .remember(base) : .setAside(base.file)
    }

    private static func fileChanged(
        _ name: FileName, _ bytes: [UInt8], _ base: MirrorBase, _ object: JSONObject?, isDoubtful: Bool
    ) -> MirrorStep {
        do throws(FileContent.Problem) {
            let mine = try FileContent.object(bytes, kind: name.kind, existing: base.object)
            let next = MirrorBase(file: name, bytes: bytes, object: mine)
            guard let object else { return push(from: nil, to: mine, next, .restoredObject) }
            if mine == object { return .remember(next) }
            if object == base.object { return push(from: object, to: mine, next, nil) }
            if isDoubtful { return .setAside(name) }
            let merge: ThreeWayMerge
            do { merge = try ThreeWayMerge(base: base.object, mine: mine, theirs: object) } catch {
                return .setAside(name)
            }
            // Only the formatting differs, or the bucket already has the change: the object's state is written next.
            if merge.diff.isEmpty { return .remember(next) }
            return .push(diff: merge.diff, to: object, next, .merged(overridden: merge.overridden))
        } catch {
            return .hold(name.name, reason: error.text)
        }
    }

    private static func push(
        from object: JSONObject?, to mine: JSONObject, _ base: MirrorBase, _ remark: MirrorRemark?
    ) -> MirrorStep {
        let diff = JSONDiff.diff(from: object ?? JSONObject(), to: mine)
        return .push(diff: diff, to: object, base, remark)
    }
}

extension MirrorBase {
    /// The first file of an object; nil when its key is too long for a name.
    init?(key: String, object: JSONObject) {
        guard let file = try? FileName(key: key, kind: FileContent.kind(of: object)),
            let bytes = FileContent.bytes(object, kind: file.kind)
        else { return nil }
        self.init(file: file, bytes: bytes, object: object)
    }

    /// What the mirror's own folder stores of the base.
    var value: JSONValue {
        [
            "name": .string(file.name), "object": .object(object),
            "file": .string(String(decoding: bytes, as: UTF8.self)),
        ]
    }

    /// nil when it is damaged or belongs to another key.
    init?(_ value: JSONValue, key: String) {
        guard let name = value["name"]?.stringValue, let object = value["object"]?.objectValue,
            let text = value["file"]?.stringValue, let file = try? FileName(file: name),
            same(file.key, key)
        else { return nil }
        self.init(file: file, bytes: Array(text.utf8), object: object)
    }
}
