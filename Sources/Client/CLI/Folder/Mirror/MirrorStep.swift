import ThicketProtocol

/// The state in which a file and its object were last the same, or rather: what the file held when the bucket last
/// contained all of it. Everything is decided by comparing both with this.
struct MirrorBase: Sendable, Equatable {
    let file: FileName
    /// The file's bytes.
    let bytes: [UInt8]
    /// The same as an object.
    let object: JSONObject
}

/// One thing to do about one key. After it, the key is looked at again, until there is nothing to do: so a merge is a
/// `push` now and a `write` in the next round, and a stop between the two harms nothing.
enum MirrorStep: Sendable, Equatable {
    case nothing
    /// File and object agree: remember it (nil: neither is there).
    case remember(MirrorBase?)
    /// Change the object by `diff` if it is still `object` (nil: not there), then remember.
    case push(diff: ObjectDiff, to: JSONObject?, MirrorBase, MirrorNote?)
    /// Remove the object if it is still this one, then remember that neither is there.
    case remove(JSONObject)
    /// Write the file if it still holds `expecting` (nil: no file), then remember.
    case write(expecting: [UInt8]?, MirrorBase, MirrorNote?)
    /// Delete the file if it still holds this, then remember that neither is there.
    case delete(FileName, expecting: [UInt8])
    /// Give the file another name: it and the object have nothing in common.
    case setAside(FileName)
    /// Leave both alone: the file of this name, or the object of this key where it has no file name.
    case hold(String, reason: String)
}

/// What the user should hear about.
enum MirrorNote: Sendable, Equatable {
    /// Both sides changed it and both changes are in; at these paths the file's counts.
    case merged(overridden: [String])
    /// Deleted in the folder, changed in the bucket: it stays.
    case restoredFile
    /// Changed in the folder, removed from the bucket: it stays.
    case restoredObject
    /// Not changed in the folder, and absent from a bucket that need not be the one that had it.
    case sentAgain
}

/// What lies in the folder under a key.
enum MirrorFile: Sendable, Equatable {
    case absent
    case present(FileName, [UInt8])
    /// It is there and cannot be read.
    case unreadable(FileName, reason: String)
}

extension MirrorStep {
    /// Decides about one key. Pure: the same three states give the same step.
    ///
    /// - Parameters:
    ///   - base: nil when the key was never in both, or is in neither.
    ///   - key: of the object; a new file gets its name from it.
    ///   - isRemoved: an object that is not there is known to be removed (`ObjectLook.isRemoved`).
    ///   - isDoubtful: the base need not be a state that the bucket has had (`MirrorState.isDoubtful`).
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
            // No longer a text: the file gives way to one of another kind.
            return .delete(base.file, expecting: base.bytes)
        }
        let next = MirrorBase(file: base.file, bytes: bytes, object: object)
        return bytes == base.bytes ? .remember(next) : .write(expecting: base.bytes, next, nil)
    }

    /// The file is as it was, and nothing says that the bucket went on from there: what is absent is sent again, and
    /// what differs is kept beside the file.
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
            // Only the way it is written differs, or the bucket has it already: the object's state is written next.
            if merge.diff.isEmpty { return .remember(next) }
            return .push(diff: merge.diff, to: object, next, .merged(overridden: merge.overridden))
        } catch {
            return .hold(name.name, reason: error.text)
        }
    }

    private static func push(
        from object: JSONObject?, to mine: JSONObject, _ base: MirrorBase, _ note: MirrorNote?
    ) -> MirrorStep {
        let diff = JSONDiff.diff(from: object ?? JSONObject(), to: mine)
        return .push(diff: diff, to: object, base, note)
    }
}

extension MirrorBase {
    /// The file of an object that has none yet; nil when its key is too long for a name.
    init?(key: String, object: JSONObject) {
        guard let file = try? FileName(key: key, kind: FileContent.kind(of: object)),
            let bytes = FileContent.bytes(object, kind: file.kind)
        else { return nil }
        self.init(file: file, bytes: bytes, object: object)
    }

    /// What is kept of it in the mirror's own folder.
    var value: JSONValue {
        [
            "name": .string(file.name), "object": .object(object),
            "file": .string(String(decoding: bytes, as: UTF8.self)),
        ]
    }

    /// nil when it is damaged or of another key.
    init?(_ value: JSONValue, key: String) {
        guard let name = value["name"]?.stringValue, let object = value["object"]?.objectValue,
            let text = value["file"]?.stringValue, let file = try? FileName(file: name),
            same(file.key, key)
        else { return nil }
        self.init(file: file, bytes: Array(text.utf8), object: object)
    }
}
